"""Integers of a dtype wrap around where terms do not: a known value is only kept where it fits the dtype.

Sizes and indices are less than 2^31, and so are, by assumption, integers of which nothing is known.
"""

from __future__ import annotations

from math import prod

import torch

from orderproof.prover.logic.terms import (
    Apply,
    Atom,
    Conditional,
    FloorDivision,
    Formula,
    Product,
    Term,
    at_most,
    conjunction,
    less,
)
from orderproof.prover.recheck.assumptions import SMALL_INTEGERS_ASSUMPTION
from orderproof.prover.symbolic.context import Context
from orderproof.prover.symbolic.open_fact import Axes, index
from orderproof.prover.symbolic.statement import BATCH, TOKENS

_GREATEST = 2**31 - 1  # of a size, an index and an unknown integer
_INT64 = 2**63


def fits(context: Context, value: Term, sizes: Axes, dtype: torch.dtype) -> bool:
    """True if a term is within the limits of a dtype of integers, for all indices within these sizes."""
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return False
    if dtype is torch.int64:
        if _Bounds(sizes, _INT64 - 1).of(value) < _INT64:
            return True
        if _Bounds(sizes, _GREATEST).of(value) < _INT64:
            context.assume(SMALL_INTEGERS_ASSUMPTION)
            return True
    limits = torch.iinfo(dtype)
    within: Formula = conjunction(at_most(limits.min, value), at_most(value, limits.max))
    bounded = (less(TOKENS, _GREATEST), less(BATCH, _GREATEST))
    return context.proves(within, sizes, *bounded)


class _Bounds:
    """Numbers that terms do not exceed in size, given the axes of their indices and a limit of unknown integers."""

    def __init__(self, sizes: Axes, unknown: int) -> None:
        self.unknown = unknown
        self._known: dict[Atom, int] = {}
        for axis, size in enumerate(sizes):
            ((variable, _),) = index(axis).summands
            self._known[variable] = max(self.of(size), 1)  # sizes have no indices

    def of(self, term: Term) -> int:
        """A bound of a term."""
        return abs(term.constant) + sum(abs(factor) * self._of_atom(atom) for atom, factor in term.summands)

    def _of_atom(self, atom: Atom) -> int:
        if atom not in self._known:
            self._known[atom] = self._computed(atom)
        return self._known[atom]

    def _computed(self, atom: Atom) -> int:
        match atom:
            case Apply():
                return self.unknown
            case Conditional((_, first, second)):
                return max(self.of(first), self.of(second))
            case FloorDivision((dividend, divisor)):
                return self.of(dividend) // int(divisor) + 1
            case Product((factors,)):
                return prod(map(self._of_atom, factors))
        return _GREATEST
