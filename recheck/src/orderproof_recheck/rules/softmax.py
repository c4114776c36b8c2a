"""Softmax and attention. A hidden score has weight zero if some score of its row is visible.

Let h be the hidden scores of a row, and v the condition that one of its scores is ordinary. A row of weights is the
same in both runs if each score of the row is the same, or hidden while v holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orderproof_recheck.assumptions import FINITE_SCORES_ASSUMPTION
from orderproof_recheck.facts import ORDINARY_LIMIT, Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import FALSE, Formula, at_most, every, less, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.rules.sums import added, product_sum
from orderproof_recheck.steps import Derived, Step

Score = Callable[[Digits], Predicates]  # of the row of an element, at an index along it


@dataclass(frozen=True)
class Row:
    """A row of scores: what is known of its weights."""

    agrees: Formula  # all weights are the same in both runs; over further indices
    counts: Formula  # hidden scores have weight zero: a score is visible
    bounded: Formula  # every score is ordinary or hidden, or low next to a visible one; over further indices
    low: Formula  # every score is ordinary or any lower number; over further indices


def row_of(step: Step, score: Score, axes: tuple[Term, ...], places: Sequence[tuple[Term, Term]]) -> Row:
    """A row of scores along a dimension with these axes.

    `places` are (size, index) of the other dimensions of the result: a token usually sees itself.
    """
    one = score(step.further(axes))
    if one.hidden is FALSE and one.low is FALSE:
        return Row(one.same, FALSE, one.ordinary, one.ordinary)
    step.assume(FINITE_SCORES_ASSUMPTION)
    other = score(step.further(axes))
    visible = some(*(_visible(score, axes, place) for place in _witnesses(axes, places)))
    bounded = some(other.ordinary, other.hidden, every(other.low, visible))
    counts = every(visible, bounded)
    return Row(some(one.same, every(one.hidden, counts)), counts, bounded, other.at_most_ordinary)


def _witnesses(axes: tuple[Term, ...], places: Sequence[tuple[Term, Term]]) -> list[Term]:
    """Indices at which a score may be visible: the first, the last, and that of the token itself."""
    if len(axes) != 1:
        return []
    (size,) = axes
    matching = [(extent, place) for extent, place in places if (size - extent).is_integer]
    own = [w for extent, place in matching for w in (place, place + size - extent)]
    return list(dict.fromkeys([*own, integer(0), size - 1]))


def _visible(score: Score, axes: tuple[Term, ...], place: Term) -> Formula:
    return every(at_most(0, place), less(place, axes[0]), score(((axes[0], place),)).ordinary)


def softmax(step: Step) -> list[Derived]:
    """Softmax along a dimension."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    logarithm = "log" in step.name

    def score(at: Digits) -> Predicates:
        dims = step.all_digits()
        return read(fact, [at if d == dim else dims[d] for d in range(len(dims))], step.equal).predicates

    row = row_of(step, score, fact.axes[dim], _other_places(step, dim))
    own = score(step.digits(dim))
    if logarithm:
        return [Derived(Predicates(same=every(row.agrees, own.same), ordinary=FALSE))]
    zero = every(own.hidden, row.counts)
    return [Derived(Predicates(same=row.agrees, zero=zero, ordinary=row.bounded))]


def _other_places(step: Step, dim: int) -> list[tuple[Term, Term]]:
    return [digit for d in range(len(step.shape)) if d != dim for digit in step.digits(d)]


def largest_score(step: Step) -> list[Derived]:
    """The greatest score of a row, and where it is. A hidden score is not, if some score of its row is visible."""
    fact = step.fact(0)
    rank, keep = len(fact.axes), len(step.shape) == len(fact.axes)
    given = step.argument(1, "dim")
    dim = step.dim(given[0] if isinstance(given, list) and len(given) == 1 else given, rank)
    require(keep or len(step.shape) == rank - 1, "the result has another number of dimensions")
    require(not keep or all(shape[dim] is ONE for shape in step.shapes), "the result has another shape")
    own = [() if d == dim else step.digits(d if keep or d < dim else d - 1) for d in range(rank)]

    def score(at: Digits) -> Predicates:
        return read(fact, [at if d == dim else own[d] for d in range(rank)], step.equal).predicates

    row = row_of(step, score, fact.axes[dim], [digit for digits in own for digit in digits])
    return [Derived(Predicates(same=row.agrees, ordinary=row.counts, low=row.low)), *_places(step, row)]


def _places(step: Step, row: Row) -> list[Derived]:
    return [Derived(Predicates(same=row.agrees)) for _ in step.claims[1:]]


def attention(step: Step) -> list[Derived]:
    """Scaled dot-product attention of queries [..., row, width] to keys and values [..., column, width]."""
    query, key, value = (step.fact(k) for k in range(3))
    mask, causal = step.argument(3, "attn_mask"), step.argument(5, "is_causal", False)
    require(step.argument(4, "dropout_p", 0.0) == 0.0, "attention with dropout")
    scale = step.kwargs.get("scale")
    require(not isinstance(scale, int | float) or abs(scale) < ORDINARY_LIMIT, "a scale as large as a mask")
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
    step.assume(FINITE_SCORES_ASSUMPTION)
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


SOFTMAX: dict[str, Callable[[Step], list[Derived]]] = {
    **dict.fromkeys(("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax"), softmax),
    "scaled_dot_product_attention": attention,
}
