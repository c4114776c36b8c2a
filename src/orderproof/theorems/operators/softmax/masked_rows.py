"""Rows of scores in which hidden entries do not count next to a visible one.

A row agrees in both runs where each of its entries agrees, or is hidden in both while another entry is visible.

Machine-checked (proofs/symbolic/hidden_scores.v): hidden_weight_is_zero, row_without_visible_entry.
Not machine-checked: that scores are small next to the mask, which is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    Variable,
    as_term,
    at_most,
    conjunction,
    disjunction,
    floor_division,
    less,
    product,
    remainder,
)
from orderproof.number_limits import finite_scores_assumption
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import Axes, OpenFact, axis_variable, index
from orderproof.theorems.statement import TOKENS
from orderproof.theorems.walks.context import Context


@dataclass(frozen=True)
class MaskedRows:
    """Rows of scores in which hidden entries do not count next to a visible one.

    Attributes:
        placed: The scores with the dimension of the rows last.
        kept: The axes of the other dimensions.
        vanishing: Entries that do not count.
        agrees: Rows all of whose other entries agree.
        bounded: Rows without an entry that may be anything. Next to a visible entry, one may be low.
        at_most_ordinary: Rows all of whose entries are ordinary or any lower number.
        visible: Rows with a visible entry.

    """

    placed: OpenFact
    kept: tuple[Axes, ...]
    vanishing: Formula
    agrees: Formula
    bounded: Formula
    at_most_ordinary: Formula
    visible: Formula

    @classmethod
    def of(cls, context: Context, scores: OpenFact, dim: int, seen: Formula = FALSE) -> MaskedRows:
        """The rows of scores along a dimension; those where `seen` is true have a visible entry."""
        rank = len(scores.dims)
        kept = [d for d in range(rank) if d != dim]
        common = frame([(scores, range(rank))], kept)
        placed = common.place(scores, range(rank))
        ranges, sizes = placed.ranges(), placed.sizes
        axes = tuple(common.axes[d] for d in kept)
        first_bound = sum(map(len, axes))
        bounded = TRUE if ranges.unbounded is FALSE else context.for_all(~ranges.unbounded, sizes, first_bound)
        visible, vanishing = TRUE, FALSE
        at_most_ordinary = bounded
        if ranges.low is not FALSE:
            at_most_ordinary = context.for_all(ranges.at_most_ordinary, sizes, first_bound)
        if ranges.hidden is not FALSE or ranges.low is not FALSE:
            context.assume(finite_scores_assumption())
            visible = some_visible(context, ranges.finite, sizes, first_bound) | seen
            bounded = bounded | (at_most_ordinary & visible) if ranges.low is not FALSE else bounded
            vanishing = conjunction(ranges.hidden, bounded, visible)
        agrees = context.for_all(placed.same | vanishing, sizes, first_bound)
        return cls(placed, axes, vanishing, agrees, bounded, at_most_ordinary, visible)


def some_visible(context: Context, finite: Formula, sizes: tuple[Term, ...], first_bound: int) -> Formula:
    """A condition on a row under which one of its entries is visible."""
    row = sizes[first_bound:]
    if not row or any(not size.is_constant for size in row[1:]):
        return FALSE
    size = product(row)
    return disjunction(*(
        Substitution(_digits(place, row, first_bound)).formula(finite)
        for place in _witnesses(context, sizes, first_bound, size)
    ))  # fmt: skip


def _digits(place: Term, row: tuple[Term, ...], first: int) -> dict[Variable, Term]:
    """The index along each axis of a row for a place in it: all but the first axis have constant sizes."""
    found: dict[Variable, Term] = {}
    for k in range(len(row) - 1, 0, -1):
        found[axis_variable(first + k)] = remainder(place, row[k].constant)
        place = floor_division(place, row[k].constant)
    return {**found, axis_variable(first): place}


def _witnesses(context: Context, sizes: tuple[Term, ...], first_bound: int, size: Term) -> Iterator[Term]:
    """Indices that may be visible: the same token, counted from both ends, a real one, the first and the last."""
    own = [k for k in range(first_bound - 1, -1, -1) if size.is_constant or not sizes[k].is_constant]
    places = [place for k in own for place in (index(k), index(k) + size - sizes[k])]
    if size is TOKENS and context.real_token is not None:
        places.append(context.real_token)
    for place in dict.fromkeys(places):
        inside = [at_most(0, place), less(place, size)]
        if all(context.proves(f, sizes) for f in inside):
            yield place
    yield as_term(0)
    yield size - 1
