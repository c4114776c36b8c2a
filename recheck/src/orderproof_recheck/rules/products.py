"""Sums of products.

A sum of products is the same in both runs if each product is: all factors are the same, or one is zero and the others
are ordinary. The further indices of a step are those that are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from orderproof_recheck.facts import Axes, Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import FALSE, every, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.mask_sizes import finite_scores
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import ONE, broadcast_element, size_of
from orderproof_recheck.rules.numbers import is_ordinary
from orderproof_recheck.steps import Derived, Step

Labels = Sequence[Hashable]


Combined = Callable[[Sequence[Fact]], Predicates]  # of an element of each operand, for all further indices


def contraction(
    step: Step, operands: Sequence[tuple[Fact, Labels]], result: Mapping[Hashable, Digits],
    combined: Combined | None = None,
) -> Predicates:  # fmt: skip
    """A sum of products, or another function, over the labels that have no digits in the result."""
    places = dict(result)
    for fact, labels in operands:
        require(fact.dtype == operands[0][0].dtype, "the factors have different dtypes")
        require(len(labels) == len(fact.axes), "an operand has another number of dimensions")
        for dim, label in enumerate(labels):
            if label not in places and size_of(fact, dim) is not ONE:
                places[label] = step.further(_finest(label, operands))
    elements = []
    for fact, labels in operands:
        dims = [() if size_of(fact, d) is ONE else places[label] for d, label in enumerate(labels)]
        elements.append(read(fact, dims, step.equal))
    return (combined or product_sum)(elements)


def _finest(label: Hashable, operands: Sequence[tuple[Fact, Labels]]) -> Axes:
    """Of the axes that operands have for a label, those with the most parts."""
    found = [fact.axes[d] for fact, labels in operands for d, one in enumerate(labels) if one == label]
    return max(found, key=len)


def product_sum(factors: Sequence[Fact]) -> Predicates:
    """The sum of the products of these elements, over all further indices."""
    zero = some(*(every(f.zero, *(g.ordinary for g in factors if g is not f)) for f in factors))
    return Predicates(
        same=some(every(*(f.same for f in factors)), zero),
        zero=zero,
        ordinary=some(every(*(f.ordinary for f in factors)), zero),
    )


def added(step: Step, first: Predicates, second: Predicates) -> Predicates:
    """The sum of two elements. Next to a mask an ordinary number does not count, and a lower one hides, too."""
    hidden = some(every(first.hidden, second.at_most_ordinary), every(second.hidden, first.at_most_ordinary))
    if hidden is not FALSE:
        step.assume(finite_scores())
    return Predicates(
        same=every(first.same, second.same),
        zero=every(first.zero, second.zero),
        hidden=hidden,
        ordinary=every(first.ordinary, second.ordinary),
        low=every(first.at_most_ordinary, second.at_most_ordinary),
    )


def linear(step: Step) -> list[Derived]:
    """X W^T + b."""
    fact, weight = step.fact(0), step.fact(1, "weight")
    outer = [f"x{d}" for d in range(len(fact.axes) - 1)]
    found = _labelled(step, [(fact, [*outer, "in"]), (weight, ["out", "in"])], [*outer, "out"])
    bias = step.argument(2, "bias")
    if bias is not None:
        require(isinstance(bias, Fact), "expected a tensor as the bias")
        found = added(step, found, broadcast_element(step, bias).predicates)
    return [Derived(found)]


def _labelled(
    step: Step, operands: Sequence[tuple[Fact, Labels]], result: Labels, combined: Combined | None = None
) -> Predicates:
    """A contraction whose result has these labels."""
    require(len(result) == len(step.shape), "the result has another number of dimensions")
    places = {}
    for d, label in enumerate(result):
        places[label] = step.digits(d)
        sizes = [size_of(f, k) for f, own in operands for k, one in enumerate(own) if one == label]
        fits = all(size is ONE or step.equal(size, step.shape[d]) for size in sizes)
        require(fits and any(step.equal(size, step.shape[d]) for size in sizes), "the result has another shape")
    return contraction(step, operands, places, combined)


def _product(step: Step, first: Fact, second: Fact) -> Predicates:
    """A B, with broadcasting of the outer dimensions."""
    rows = ["row"] if len(first.axes) > 1 else []
    columns = ["column"] if len(second.axes) > 1 else []
    outer = max(len(first.axes), len(second.axes), 2) - 2
    batch = [f"batch {d}" for d in range(outer)]
    left = [*batch[outer - max(len(first.axes) - 2, 0) :], *rows, "sum"]
    right = [*batch[outer - max(len(second.axes) - 2, 0) :], "sum", *columns]
    return _labelled(step, [(first, left), (second, right)], [*batch, *rows, *columns])


def matmul(step: Step) -> list[Derived]:
    """A B."""
    return [Derived(_product(step, step.fact(0), step.fact(1)))]


def addmm(step: Step) -> list[Derived]:
    """C + A B."""
    require(step.kwargs.get("beta", 1) == 1, "a scaled sum of products")
    require(is_ordinary(step.kwargs.get("alpha", 1)), "a product scaled by a number that is not ordinary")
    found = _product(step, step.fact(1), step.fact(2))
    return [Derived(added(step, found, broadcast_element(step, step.fact(0)).predicates))]


def einsum(step: Step) -> list[Derived]:
    """A product by labels."""
    equation, facts = step.argument(0, "equation"), step.argument(1, "tensors")
    require(isinstance(equation, str) and "..." not in equation, "an einsum with an ellipsis")
    left, arrow, right = equation.replace(" ", "").partition("->")
    labels = [list(part) for part in left.split(",")]
    require(arrow and all(len(set(part)) == len(part) for part in labels), "an einsum with a diagonal")
    return [Derived(_labelled(step, list(zip(facts, labels, strict=True)), list(right)))]


def distances(step: Step) -> list[Derived]:
    """The distance of each vector of one set to each of another: it is computed from all elements of both."""
    facts = [step.fact(0), step.fact(1)]
    outer = [f"batch {d}" for d in range(len(step.shape) - 2)]
    own = [[*outer[len(outer) + 2 - len(f.axes) :], end, "in"] for f, end in zip(facts, ("row", "column"), strict=True)]
    found = _labelled(step, list(zip(facts, own, strict=True)), [*outer, "row", "column"], every_pair)
    return [Derived(found)]


def every_pair(factors: Sequence[Fact]) -> Predicates:
    """A function of these elements, for all further indices."""
    return Predicates(same=every(*(f.same for f in factors)), ordinary=every(*(f.ordinary for f in factors)))


_ANY_ORDER = Permuted(in_any_order=(0, 1))
PRODUCTS: dict[str, Operator] = {
    **operators(("matmul", "mm", "bmm", "mv", "dot"), matmul, _ANY_ORDER, may_wrap=True),
    **operators(("addmm", "baddbmm"), addmm, _ANY_ORDER, may_wrap=True),
    **operators(("linear",), linear, _ANY_ORDER, may_wrap=True),
    **operators(("cdist", "_cdist_forward"), distances, _ANY_ORDER),
    **operators(("einsum",), einsum, _ANY_ORDER, may_wrap=True),
    "__matmul__": Operator(matmul, _ANY_ORDER),
}  # fmt: skip
