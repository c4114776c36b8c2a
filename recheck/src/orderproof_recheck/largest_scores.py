"""Knowledge of tensors by the largest score of each row of another tensor, the scores.

The largest score of a row is not below a score of the row that is chosen by its rank. Its index is among those of the k
largest. And if a score of the row is ordinary, and all others are ordinary, hidden or low, the largest is ordinary. So
where keys are hidden whose scores are below such a score, or that are not among the k largest, one stays visible.

Equal scores may be largest together. What holds at each of them is `of_any`; else it holds at the one whose index a
step has found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orderproof_recheck.at_largest import (
    AT_LARGEST,
    BELOW,
    CHOSEN,
    ORDINARY,
    PLACES,
    RANKED,
    constant_level,
    number_level,
    pointwise_level,
    score_in_row,
)
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, Fact, Largest
from orderproof_recheck.index_maps import Digits
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, every, opposite
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.rules.numbers import CONVERSIONS, COPIES
from orderproof_recheck.rules.pointwise import is_lowered
from orderproof_recheck.steps import Step

RANKS = {"topk": 2, "kthvalue": 2, "sort": 1, "median": 1, "max": 1, "min": 1, "amax": 1, "amin": 1, "argmax": 1}


def note_largest(step: Step) -> None:
    """Keep with the results of a step what is known by the largest scores of rows."""
    try:
        if step.name in RANKS:
            step.largest = {k: _of_a_rank(step, k) for k in range(len(step.claims))}
        elif any(isinstance(x, Fact) and x.largest is not None for x in step.args):
            step.largest = {0: _followed(step)}
    except CertificateError:
        step.largest = {}


def _followed(step: Step) -> Largest | None:
    if step.name == "scatter":
        return _scattered(step)
    known = [x.largest for x in step.args if isinstance(x, Fact) and x.largest is not None]
    if step.name in ("lt", "le", "gt", "ge") and any(one.known in (RANKED, BELOW) for one in known):
        return _compared(step)
    first = step.args[0]
    if len(known) == 1 and isinstance(first, Fact) and first.largest is known[0]:
        both_integers = step.claim.dtype in INTEGER_LIMITS and first.dtype in INTEGER_LIMITS
        if step.name in COPIES or (step.name in CONVERSIONS and both_integers):
            return known[0]
        if known[0].known in (RANKED, BELOW) and is_lowered(step):
            return replace(known[0], known=BELOW)
        if (dims := _rearranged(step, first)) is not None:
            return replace(known[0], dims=tuple(None if d is None else known[0].dims[d] for d in dims))
        if step.name in ("slice", "narrow", "select"):
            return _part(step, known[0])
    return pointwise_level(step, known) if step.name in AT_LARGEST else None


def _rearranged(step: Step, fact: Fact) -> list[int | None] | None:
    """For each dimension of the result that of the operand; None for an operator that does something else."""
    rank = len(fact.axes)
    if step.name == "unsqueeze":
        new = step.dim(step.argument(1, "dim"), rank + 1)
        return [*range(new), None, *range(new, rank)]
    if step.name == "squeeze":
        given = step.argument(1, "dim", list(range(rank)))
        chosen = {step.dim(d, rank) for d in (given if isinstance(given, list) else [given])}
        return [d for d in range(rank) if d not in chosen or size_of(fact, d) is not ONE]
    if step.name in ("expand", "broadcast_to", "expand_as"):
        return [*[None] * (len(step.shape) - rank), *(None if size_of(fact, d) is ONE else d for d in range(rank))]
    if step.name in ("transpose", "swapaxes", "swapdims") and len(step.args) == 3:
        a, b = (step.dim(step.args[k], rank) for k in (1, 2))
        return [{a: b, b: a}.get(d, d) for d in range(rank)]
    return [step.dim(d, rank) for d in step.argument(1, "dims")] if step.name == "permute" else None


def _of_a_rank(step: Step, result: int) -> Largest | None:
    """Scores that are chosen by their rank, or the index of the largest."""
    scores, name = step.fact(0), step.name
    given = step.argument(RANKS[name], "dim", None if name[0] in "ma" else -1)
    given = given[0] if isinstance(given, list) and len(given) == 1 else given
    rank = len(scores.axes)
    if type(given) is not int or not rank or scores.dtype not in FLOATS:
        return None
    dim, kept = step.dim(given, rank), len(step.shapes[result]) == rank
    dims = tuple(d for d in range(rank) if kept or d != dim)
    if result == 0 and name != "argmax":
        if scores.largest is not None and scores.largest.known == RANKED:
            before = scores.largest
            own = before.dims[dim] in (before.dim, None)
            return replace(before, dims=tuple(before.dims[d] for d in dims)) if own else None
        return Largest(scores, dim, dims, RANKED, step.node)
    if name in ("max", "argmax"):
        return Largest(scores, dim, dims, CHOSEN, step.node)
    if name == "topk" and step.argument(3, "largest", True) is True:
        return Largest(scores, dim, dims, CHOSEN if step.argument(1, "k") == 1 else PLACES, step.node)
    return None


def _part(step: Step, one: Largest) -> Largest | None:
    dim = step.dim(step.argument(1, "dim", 0), len(one.dims))
    if one.known not in (RANKED, CHOSEN) or one.dims[dim] not in (one.dim, None):
        return None
    return replace(one, dims=(*one.dims[:dim], *one.dims[dim + 1 :])) if step.name == "select" else one


def _compared(step: Step) -> Largest | None:
    """Scores that are compared with one of their row."""
    first, second = step.args
    for scores, other, name in ((first, second, step.name), (second, first, _EXCHANGED[step.name])):
        one = other.largest if isinstance(other, Fact) else None
        if one is None or one.known not in (RANKED, BELOW) or one.scores is not scores or name not in ("lt", "ge"):
            continue
        rank = len(scores.axes)
        if len(other.axes) == rank and all(one.dims[d] == d for d in range(rank) if d != one.dim):
            return Largest(one.scores, one.dim, tuple(range(rank)), name == "ge")
    return None


_EXCHANGED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _scattered(step: Step) -> Largest | None:
    """Elements that are written to the places of the largest scores of a row."""
    if len(step.args) != 4 or step.kwargs:
        return None
    fact, _, places, source = step.args
    one = places.largest if isinstance(places, Fact) else None
    if one is None or one.known not in (PLACES, CHOSEN) or len(fact.axes) != len(places.axes):
        return None
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    whole = all(step.equal(size_of(fact, d), size_of(places, d)) for d in range(len(fact.axes)) if d != dim)
    row = size_of(one.scores, one.dim)
    if not whole or one.dims[dim] not in (one.dim, None) or not step.equal(size_of(fact, dim), row):
        return None
    dims = tuple(one.dim if d == dim else own for d, own in enumerate(one.dims))
    if isinstance(source, Fact):
        is_ordinary = source.dtype in FLOATS and source.ordinary is TRUE and source.hidden is FALSE
        written = constant_level(source)
        written = ORDINARY if written is None and (is_ordinary or are_values_at(source, one)) else written
    else:
        written = number_level(source)
    return None if written is None else replace(one, dims=dims, known=written)


def are_values_at(source: Fact, places: Largest) -> bool:
    """True for the largest scores of a row, and the places at which they are."""
    values, found = source.largest, places.known in (PLACES, CHOSEN)
    return (
        found
        and values is not None
        and values.known == RANKED
        and (values.origin, values.dims) == (places.origin, places.dims)
    )


def not_chosen(step: Step, places: Fact, at: Digits, has_largest: Callable[[Largest], Formula]) -> Formula:
    """Where an index along the rows of the scores is not that of the largest, which a tensor of indices has."""
    one = places.largest
    if one is None or one.known != CHOSEN:
        return FALSE
    try:
        return every(has_largest(one), opposite(score_in_row(step, one, at).ordinary))
    except CertificateError:
        return FALSE
