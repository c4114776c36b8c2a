"""The conditions of ranges of lengths: their open factors, and a length that fulfils them."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof_recheck.logic.formulas import (
    FALSE,
    AtMostZero,
    Every,
    Formula,
    IsZero,
    Not,
    Some,
    at_most_zero,
    every,
    is_zero,
    opposite,
    some,
)
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Atom, Product, Term, integer, of_atom
from orderproof_recheck.statements import BATCH, TOKENS

TRIED_LENGTHS = 256  # [tokens] from the first of a range on
TRIED_ROWS = (2, 3)


def can_be_fulfilled(least: int, greatest: int | None, conditions: Sequence[Formula]) -> bool:
    """True if one of the first lengths of a range fulfils conditions; functions in them may have any values."""
    whole = every(*conditions)
    end = least + TRIED_LENGTHS if greatest is None else min(greatest + 1, least + TRIED_LENGTHS)
    (batch,), (tokens,) = BATCH.variables, TOKENS.variables
    return whole is not FALSE and any(
        Replacement({batch: integer(rows), tokens: integer(length)}).formula(whole) is not FALSE
        for length in range(least, end)
        for rows in TRIED_ROWS
    )


def without_open_factors(condition: Formula) -> Formula:
    """A condition with the numbers of rows and tokens, which are positive, divided out of comparisons with zero."""
    match condition:
        case AtMostZero(fields=(term,)):
            return at_most_zero(_divided(term))
        case IsZero(fields=(term,)):
            return is_zero(_divided(term))
        case Not(fields=(inner,)):
            return opposite(without_open_factors(inner))
        case Every(fields=(parts,)):
            return every(*map(without_open_factors, parts))
        case Some(fields=(parts,)):
            return some(*map(without_open_factors, parts))
    return condition


def _divided(term: Term) -> Term:
    """A term without the open sizes that are factors of all of its summands."""
    for size in (*BATCH.variables, *TOKENS.variables):
        while not term.constant and all(size in _factors(atom) for atom, _ in term.summands):
            term = _quotient(term, size)
    return term


def _quotient(term: Term, size: Atom) -> Term:
    total = integer(0)
    for atom, number in term.summands:
        rest = list(_factors(atom))
        rest.remove(size)
        quotient = integer(number)
        for factor in rest:
            quotient = quotient.times(of_atom(factor))
        total = total + quotient
    return total


def _factors(atom: Atom) -> tuple[Atom, ...]:
    return atom.fields[0] if isinstance(atom, Product) else (atom,)
