"""Fused attention of queries [..., row, width] to keys and values [..., column, width]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import Formula, every, less, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer
from orderproof_recheck.mask_sizes import finite_scores, ordinary_limit
from orderproof_recheck.operator import Operator, Permuted
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.rules.products import added, product_sum
from orderproof_recheck.rules.softmax import row_of
from orderproof_recheck.steps import Derived, Step


def attention(step: Step) -> list[Derived]:
    """Scaled dot-product attention of queries [..., row, width] to keys and values [..., column, width]."""
    query, key, value = (step.fact(k) for k in range(3))
    mask, causal = step.argument(3, "attn_mask"), step.argument(5, "is_causal", False)
    require(step.argument(4, "dropout_p", 0.0) == 0.0, "attention with dropout")
    scale = step.kwargs.get("scale")
    require(not isinstance(scale, int | float) or abs(scale) < ordinary_limit(), "a scale as large as a mask")
    rank = len(query.axes)
    require(query.dtype == key.dtype == value.dtype, "attention of several dtypes")
    require(len(key.axes) == len(value.axes) == rank == len(step.shape) >= 2, "attention of different ranks")
    outer = [step.digits(d) for d in range(rank - 2)]
    row = step.digits(rank - 2)
    width = step.further(query.axes[rank - 1])
    repeats = bool(step.kwargs.get("enable_gqa"))

    def score(column: Digits) -> Predicates:
        one = read(query, [*_fitting(step, query, outer, repeats=False), row, width], step.equal)
        two = read(key, [*_fitting(step, key, outer, repeats=repeats), column, width], step.equal)
        found = product_sum([one, two])
        if causal:
            found = _hidden_where(step, found, less(_one_term(row), _one_term(column)))
        return found if mask is None else _masked(step, found, mask, [*outer, row, column])

    excluded = _excluded(step, mask, causal)
    axes = key.axes[rank - 2]
    known = row_of(step, score, axes, [digit for digits in (*outer, row) for digit in digits])
    column = step.further(axes)
    zero = every(score(column).hidden, known.counts)
    if excluded is not None:
        zero = every(excluded([*outer, row, column]), known.bounded)
    weight = Predicates(same=some(known.agrees, zero), zero=zero, ordinary=known.bounded)
    dims = [*_fitting(step, value, outer, repeats=repeats), column, step.digits(rank - 1)]
    element = read(value, dims, step.equal)
    return [Derived(product_sum([Fact((), step.claim.dtype, weight), element]))]


def _excluded(step: Step, mask: object, causal: object) -> Callable[[Sequence[Digits]], Formula] | None:
    """Where a mask of booleans without a value is false in both runs: a weight is zero, whatever its row has."""
    if not isinstance(mask, Fact) or mask.dtype != "bool" or mask.value is not None:
        return None
    require(not causal, "a mask depends on tokens")

    def found(dims: Sequence[Digits]) -> Formula:
        own = list(dims[len(dims) - len(mask.axes) :])
        return read(mask, [() if size_of(mask, d) is ONE else digits for d, digits in enumerate(own)], step.equal).zero

    return found


def _one_term(digits: Digits) -> Term:
    require(len(digits) <= 1, "the rows of a causal attention are merged")
    return digits[0][1] if digits else integer(0)


def _fitting(step: Step, fact: Fact, outer: Sequence[Digits], *, repeats: bool) -> list[Digits]:
    """The outer dimensions of an operand: broadcast, or heads that several queries share."""
    dims: list[Digits] = []
    for d, digits in enumerate(outer):
        size, whole = size_of(fact, d), step.shape[d]
        if size is ONE:
            dims.append(())
        elif repeats and d == len(outer) - 1 and size is not whole:
            fits = size.is_integer and whole.is_integer and whole.constant % size.constant == 0
            require(fits, "the heads of queries are no multiple of those of keys")
            place = integer(0)
            for extent, at in digits:
                place = place.times(extent) + at
            dims.append(((size, floor_of(place, whole.constant // size.constant)),))
        else:
            dims.append(digits)
    return dims


def _hidden_where(step: Step, scores: Predicates, where: Formula) -> Predicates:
    step.assume(finite_scores())
    return Predicates(
        same=some(scores.same, where),
        hidden=some(scores.hidden, where),
        ordinary=every(scores.ordinary, opposite(where)),
        low=scores.low,
    )


def _masked(step: Step, scores: Predicates, mask: object, dims: Sequence[Digits]) -> Predicates:
    """Scores plus a mask of numbers, or hidden where a mask of booleans is false."""
    require(isinstance(mask, Fact), "expected a tensor as the mask")
    assert isinstance(mask, Fact)
    own = list(dims[len(dims) - len(mask.axes) :])
    element = read(mask, [() if size_of(mask, d) is ONE else digits for d, digits in enumerate(own)], step.equal)
    if isinstance(element.value, Formula):
        return _hidden_where(step, scores, opposite(element.value))
    if mask.dtype == "bool":
        same = some(every(scores.same, element.same), element.zero)
        return Predicates(same=same, ordinary=some(scores.ordinary, element.zero))
    return added(step, scores, element.predicates)


def attention_of_moved(step: Step) -> list[Derived]:
    """For every column the score of the query and the key, and the value there."""
    query, key, value = (step.fact(k) for k in range(3))
    rank, mask = len(query.axes), step.argument(3, "attn_mask")
    require(step.argument(4, "dropout_p", 0.0) == 0.0, "attention with dropout")
    require(len(key.axes) == len(value.axes) == rank == len(step.shape) >= 2, "attention of different ranks")
    own = step.all_digits()
    outer, row = own[: rank - 2], own[rank - 2]
    for d in range(rank - 2):
        sizes = [size_of(fact, d) for fact in (query, key, value)]
        require(any(step.equal(size, step.shape[d]) for size in sizes), "its result has another shape")
    width, column = step.further(query.axes[rank - 1]), step.further(key.axes[rank - 2])
    repeats = bool(step.kwargs.get("enable_gqa"))
    places = [
        (query, [*_fitting(step, query, outer, repeats=False), row, width]),
        (key, [*_fitting(step, key, outer, repeats=repeats), column, width]),
        (value, [*_fitting(step, value, outer, repeats=repeats), column, own[rank - 1]]),
    ]
    if mask is not None:
        require(isinstance(mask, Fact) and len(mask.axes) <= rank, "expected a tensor as the mask")
        dims = [*outer, row, column][rank - len(mask.axes) :]
        places.append((mask, [() if size_of(mask, d) is ONE else digits for d, digits in enumerate(dims)]))
    reads = every(*(read(fact, dims, step.equal).same for fact, dims in places))
    if step.argument(5, "is_causal", False):
        reads = some(reads, less(_one_term(row), _one_term(column)))
    return [Derived(Predicates(same=reads))]


ATTENTION: dict[str, Operator] = {
    "scaled_dot_product_attention": Operator(attention, Permuted((0,), rule=attention_of_moved)),
}
