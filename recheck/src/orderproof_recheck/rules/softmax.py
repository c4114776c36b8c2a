"""Softmax, and the largest score of a row. A hidden score has weight zero if some score of its row is visible.

Let h be the hidden scores of a row, and v the condition that one of its scores is ordinary. A row of weights is the
same in both runs if each score of the row is the same, or hidden while v holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orderproof_recheck.at_largest import is_ordinary, score_at
from orderproof_recheck.facts import Fact, Largest, Predicates, product_of
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, every, less, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer, remainder_of
from orderproof_recheck.mask_sizes import finite_scores
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import ONE
from orderproof_recheck.statements import REAL_TOKEN, TOKENS
from orderproof_recheck.steps import Derived, Step

Score = Callable[[Digits], Predicates]  # of the row of an element, at an index along it


@dataclass(frozen=True)
class Row:
    """A row of scores: what is known of its weights."""

    agrees: Formula  # all weights are the same in both runs; over further indices
    counts: Formula  # hidden scores have weight zero: a score is visible
    bounded: Formula  # every score is ordinary or hidden, or low next to a visible one; over further indices
    low: Formula  # every score is ordinary or any lower number; over further indices
    visible: Formula  # a score is visible


def row_of(
    step: Step, score: Score, axes: tuple[Term, ...], places: Sequence[tuple[Term, Term]], seen: Formula = FALSE
) -> Row:
    """A row of scores along a dimension with these axes.

    `places` are (size, index) of the other dimensions of the result: a token usually sees itself. In rows where `seen`
    is true, a score is visible.
    """
    one = score(step.further(axes))
    if one.hidden is FALSE and one.low is FALSE:
        return Row(one.same, FALSE, one.ordinary, one.ordinary, TRUE)
    step.assume(finite_scores())
    other = score(step.further(axes))
    visible = some(*(_visible(score, axes, place) for place in _witnesses(step, axes, places)), seen)
    bounded = some(other.ordinary, other.hidden, every(other.low, visible))
    counts = every(visible, bounded)
    return Row(some(one.same, every(one.hidden, counts)), counts, bounded, other.at_most_ordinary, visible)


def has_largest(step: Step, one: Largest) -> Formula:
    """Where the row of scores of an element has a largest one that is visible."""
    places = [digit for d, own in enumerate(one.dims) if own not in (None, one.dim) for digit in step.digits(d)]
    row = row_of(step, score_at(step, one), one.scores.axes[one.dim], places)
    return every(row.visible, row.bounded)


def _largest_is_kept(step: Step, fact: Fact, dim: int) -> Formula:
    """Rows of a tensor in which the largest of the scores by which it selects is visible."""
    one = fact.largest
    if one is None or not is_ordinary(one.known) or one.dims[dim] != one.dim:
        return FALSE
    return has_largest(step, one)


def _witnesses(step: Step, axes: tuple[Term, ...], places: Sequence[tuple[Term, Term]]) -> list[Term]:
    """Indices at which a score may be visible: the first, the last, that of the token itself, and a real token."""
    if not axes or any(not inner.is_integer for inner in axes[1:]):
        return []
    size = product_of(axes)
    matching = [(extent, place) for extent, place in places if len(axes) > 1 or (size - extent).is_integer]
    own = [w for extent, place in matching for w in (place, place + size - extent)]
    real = [REAL_TOKEN] if size is TOKENS and "real token" in step.setting.names else []
    return list(dict.fromkeys([*own, *real, integer(0), size - 1]))


def _visible(score: Score, axes: tuple[Term, ...], place: Term) -> Formula:
    inside, digits = every(at_most(0, place), less(place, product_of(axes))), []
    for inner in axes[:0:-1]:  # all but the first have constant sizes
        digits.append((inner, remainder_of(place, inner.constant)))
        place = floor_of(place, inner.constant)
    return every(inside, score(((axes[0], place), *digits[::-1])).ordinary)


def softmax(step: Step) -> list[Derived]:
    """Softmax along a dimension."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    logarithm = "log" in step.name

    def score(at: Digits) -> Predicates:
        dims = step.all_digits()
        return read(fact, [at if d == dim else dims[d] for d in range(len(dims))], step.equal).predicates

    seen = _largest_is_kept(step, fact, dim)
    row = row_of(step, score, fact.axes[dim], _other_places(step, dim), seen)
    own = score(step.digits(dim))
    if logarithm:
        return [Derived(Predicates(same=every(row.agrees, own.same), ordinary=FALSE))]
    zero = every(own.hidden, row.counts)
    if step.claim.axes == fact.axes:  # of -inf it is zero, or NaN in a row of nothing else
        step.zero_or_nan = fact.endless
    return [Derived(Predicates(same=row.agrees, zero=zero, ordinary=row.bounded))]


def _other_places(step: Step, dim: int) -> list[tuple[Term, Term]]:
    return [digit for d in range(len(step.shape)) if d != dim for digit in step.digits(d)]


def largest_score(step: Step) -> list[Derived]:
    """The greatest score of a row, where it is, or both. A hidden one is not, if some score of its row is visible."""
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
    value = Derived(Predicates(same=row.agrees, ordinary=row.counts, low=row.low))
    places = [Derived(Predicates(same=row.agrees)) for _ in step.claims]
    return places if step.name == "argmax" else [value, *places[1:]]


def softmax_of_moved(step: Step) -> list[Derived]:
    """An element, and the sum of its row, whose elements may come in another order."""
    fact, own = step.fact(0), step.all_digits()
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    row = list(own)
    row[dim] = step.further(fact.axes[dim])
    return [Derived(Predicates(same=every(read(fact, own, step.equal).same, read(fact, row, step.equal).same)))]


SOFTMAX: dict[str, Operator] = operators(
    ("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax"), softmax,
    Permuted((0,), rule=softmax_of_moved),
)  # fmt: skip
