"""Sums of products, and numbers that are computed from whole rows.

A sum of products is the same in both runs if each product is: all factors are the same, or one is zero and the others
are ordinary. The further indices of a step are those that are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from orderproof.prover.recheck.assumptions import FINITE_SCORES_ASSUMPTION
from orderproof.prover.recheck.theorems.expressions import (
    FALSE,
    TRUE,
    Formula,
    Term,
    equal,
    every,
    holds,
    integer,
    less,
    opposite,
    some,
)
from orderproof.prover.recheck.theorems.facts import INTEGER_LIMITS, Axes, Fact, Predicates
from orderproof.prover.recheck.theorems.index_maps import Digits, read
from orderproof.prover.recheck.theorems.notation import require
from orderproof.prover.recheck.theorems.rules.movement import ONE, broadcast_element, single, size_of
from orderproof.prover.recheck.theorems.steps import Count, Derived, Step

Labels = Sequence[Hashable]


def contraction(step: Step, operands: Sequence[tuple[Fact, Labels]], result: Mapping[Hashable, Digits]) -> Predicates:
    """A sum of products over the labels that have no digits in the result."""
    places = dict(result)
    for fact, labels in operands:
        require(len(labels) == len(fact.axes), "an operand has another number of dimensions")
        for dim, label in enumerate(labels):
            if label not in places and size_of(fact, dim) is not ONE:
                places[label] = step.further(_finest(label, operands))
    elements = []
    for fact, labels in operands:
        dims = [() if size_of(fact, d) is ONE else places[label] for d, label in enumerate(labels)]
        elements.append(read(fact, dims, step.equal))
    return product_sum(elements)


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
    """The sum of two elements. Next to a mask an ordinary number does not count."""
    hidden = some(
        every(first.hidden, some(second.hidden, second.ordinary)),
        every(second.hidden, some(first.hidden, first.ordinary)),
    )
    if hidden is not FALSE:
        step.assume(FINITE_SCORES_ASSUMPTION)
    return Predicates(
        same=every(first.same, second.same),
        zero=every(first.zero, second.zero),
        hidden=hidden,
        ordinary=every(first.ordinary, second.ordinary),
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


def _labelled(step: Step, operands: Sequence[tuple[Fact, Labels]], result: Labels) -> Predicates:
    """A contraction whose result has these labels."""
    require(len(result) == len(step.shape), "the result has another number of dimensions")
    places = {}
    for d, label in enumerate(result):
        places[label] = step.digits(d)
        sizes = [size_of(f, k) for f, own in operands for k, one in enumerate(own) if one == label]
        fits = all(size is ONE or step.equal(size, step.shape[d]) for size in sizes)
        require(fits and any(step.equal(size, step.shape[d]) for size in sizes), "the result has another shape")
    return contraction(step, operands, places)


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
    found = _product(step, step.fact(1), step.fact(2))
    return [Derived(added(step, found, broadcast_element(step, step.fact(0)).predicates))]


def einsum(step: Step) -> list[Derived]:
    """A product by labels."""
    equation, facts = step.args[0], step.args[1]
    require(isinstance(equation, str) and "..." not in equation, "an einsum with an ellipsis")
    left, arrow, right = equation.replace(" ", "").partition("->")
    labels = [list(part) for part in left.split(",")]
    require(arrow and all(len(set(part)) == len(part) for part in labels), "an einsum with a diagonal")
    return [Derived(_labelled(step, list(zip(facts, labels, strict=True)), list(right)))]


# ---------------------------------------------------------------------- whole rows


def row_dims(step: Step, given: object, rank: int) -> list[int]:
    """The dimensions of an argument that is missing, a number or a list."""
    if given is None or given == []:
        return list(range(rank))
    return [step.dim(d, rank) for d in (given if isinstance(given, list) else [given])]


def over_rows(step: Step, fact: Fact, dims: Sequence[int], result: int = 0) -> tuple[Fact, bool]:
    """An element of a row of the operand, at a further index along these dimensions; True if they are kept."""
    rank, shape = len(fact.axes), step.shapes[result]
    keep = len(shape) == rank
    require(keep or len(shape) == rank - len(dims), "the result has another number of dimensions")
    places: list[Digits] = []
    place = 0
    for d in range(rank):
        if d in dims:
            places.append(step.further(fact.axes[d]))
            place += keep
        else:
            places.append(step.digits(place, result))
            place += 1
    return read(fact, places, step.equal), keep


def reduce(step: Step) -> list[Derived]:
    """A number for each row along some dimensions."""
    fact = step.fact(0)
    place = 2 if step.name in ("linalg_vector_norm", "norm") else 1
    given = step.argument(place, "dim")
    dims = row_dims(step, None if isinstance(given, bool) else given, len(fact.axes))
    if step.name in ("sum", "all", "_is_all_true") and len(dims) == len(fact.axes) and not step.shape:
        counted = _counted(step, fact)
        if counted is not None:
            return [counted]
    found = []
    for result in range(len(step.shapes)):
        element, keep = over_rows(step, fact, dims, result)
        one = all(step.shapes[result][d] is ONE for d in dims) if keep else True
        require(one, "the result of a reduction has another shape")
        sums = step.name in ("sum", "linalg_vector_norm", "norm")
        zero = element.zero if sums or step.name == "mean" else FALSE
        same = some(element.same, zero) if sums else element.same
        ordinary = element.ordinary
        found.append(Derived(Predicates(same=same, zero=zero, ordinary=ordinary)))
    return found


def _counted(step: Step, fact: Fact) -> Derived | None:
    """All elements of a tensor of booleans, or their number."""
    value = fact.value
    if isinstance(value, Term) and step.name != "sum":
        value = opposite(equal(value, 0))
    if not isinstance(value, Formula):
        return None
    name = f"all of {step.node}"
    require(name not in step.setting.functions, "its name is taken")
    step.setting.functions.add(name)
    step.setting.counts[step.node] = Count(value, fact.sizes)
    if step.name == "sum":
        return Derived(Predicates())
    return Derived.of_value(holds(name), "bool")


def whole_rows(step: Step, fact: Fact, dims: Sequence[int], *, others: Sequence[Fact] = ()) -> list[Derived]:
    """Results each of which is computed from a whole row: normalizations, sorting."""
    for other in others:
        require(other.same is TRUE and other.hidden is FALSE and other.ordinary is TRUE, "a parameter of it differs")
    found = []
    for result, shape in enumerate(step.shapes):
        require(len(shape) == len(fact.axes), "the result has another number of dimensions")
        places = [step.further(fact.axes[d]) if d in dims else step.digits(d, result) for d in range(len(fact.axes))]
        element = read(fact, places, step.equal)
        found.append(Derived(Predicates(same=element.same, ordinary=element.ordinary)))
    return found


def layer_norm(step: Step) -> list[Derived]:
    """Normalization over the last dimensions."""
    fact, rank = step.fact(0), len(step.fact(0).axes)
    count = len(step.argument(1, "normalized_shape"))
    others = [x for x in step.args[1:] if isinstance(x, Fact)]
    return whole_rows(step, fact, list(range(rank - count, rank)), others=others)


def sort(step: Step) -> list[Derived]:
    """Elements of a row by size."""
    fact = step.fact(0)
    given = step.argument(1, "dim", -1) if step.name in ("sort", "argsort") else step.argument(2, "dim", -1)
    return whole_rows(step, fact, [step.dim(given, len(fact.axes))])


def extreme(step: Step) -> list[Derived]:
    """The greatest or least element of a row, and where it is."""
    fact = step.fact(0)
    dims = row_dims(step, step.argument(1, "dim"), len(fact.axes))
    found = []
    for result, claim in enumerate(step.claims):
        element, _ = over_rows(step, fact, dims, result)
        ordinary = TRUE if claim.dtype in INTEGER_LIMITS and claim.dtype != fact.dtype else element.ordinary
        ordinary = TRUE if step.name in ("argmax", "argmin") else ordinary
        found.append(Derived(Predicates(same=element.same, ordinary=ordinary)))
    return found


def cumulative(step: Step) -> list[Derived]:
    """For each index, a number computed from the elements up to it."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    size = size_of(fact, dim)
    if step.name == "cumsum" and len(step.shapes) == 1:
        value = _counting(step, fact, dim)
        if value is not None:
            return [Derived.of_value(value, step.claim.dtype)]
    if size is ONE:
        return [
            Derived(Predicates(same=read(fact, step.all_digits(k), step.equal).same)) for k in range(len(step.shapes))
        ]
    found = []
    for result in range(len(step.shapes)):
        places = step.all_digits(result)
        ((_, earlier),) = further = step.further((size,))
        places[dim] = further
        element = read(fact, places, step.equal)
        after = less(single(step, dim, result), earlier)
        zero = element.zero if step.name == "cumsum" else FALSE
        found.append(Derived(Predicates(same=some(element.same, zero, after), ordinary=_always(element.ordinary))))
    return found


def _counting(step: Step, fact: Fact, dim: int) -> Term | None:
    """The running sum of one number."""
    value = fact.value
    if isinstance(value, Formula) and value in (TRUE, FALSE):
        value = integer(1 if value is TRUE else 0)
    if not isinstance(value, Term) or not value.is_integer or step.claim.dtype not in INTEGER_LIMITS:
        return None
    return (single(step, dim) + 1) * value.constant


def _always(formula: Formula) -> Formula:
    return TRUE if formula is TRUE else FALSE


SUMS: dict[str, Callable[[Step], list[Derived]]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "__matmul__"), matmul),
    **dict.fromkeys(
        ("sum", "mean", "prod", "amax", "amin", "all", "any", "var", "std", "linalg_vector_norm", "norm", "var_mean",
         "_is_all_true", "count_nonzero"), reduce,
    ),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm"), layer_norm),
    **dict.fromkeys(("sort", "topk", "argsort", "kthvalue"), sort),
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"), cumulative),
    "linear": linear, "addmm": addmm, "baddbmm": addmm, "einsum": einsum,
}  # fmt: skip
