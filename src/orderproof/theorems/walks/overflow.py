"""Integers of a dtype wrap around where terms do not: a known value is only kept where it fits the dtype.

Sizes and indices are less than 2^31. An integer of which nothing is known may be any of int64; one that depends on
inputs is assumed to be less than 2^31 in size where that decides.
"""

from __future__ import annotations

from functools import reduce

import torch

from orderproof.logic.terms import (
    Apply,
    Atom,
    Conditional,
    FloorDivision,
    Formula,
    Product,
    Term,
    as_term,
    at_most,
    conjunction,
    less,
)
from orderproof.number_limits import SMALL_INTEGERS_ASSUMPTION
from orderproof.theorems.facts.numbers import WHOLE
from orderproof.theorems.facts.open_fact import Axes, index
from orderproof.theorems.statement import BATCH, STATEMENT_FUNCTIONS, TOKENS
from orderproof.theorems.walks.context import Context

_GREATEST = 2**31 - 1  # of a size, an index and an integer that depends on inputs
_INT64 = (-(2**63), 2**63 - 1)
OF_A_RUN = "'"  # the end of the name of a function that may be another one in each run

Range = tuple[int, int]  # the least and the greatest value


def fits(context: Context, value: Term, sizes: Axes, dtype: torch.dtype) -> bool:
    """True if a term is within the limits of a dtype of integers, for all indices within these sizes.

    Of a float that is known as an integer, nothing has to be shown: its arithmetic is assumed to be exact.
    """
    if dtype in WHOLE and dtype.is_floating_point:
        return True
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return False
    if dtype is torch.int64:
        if _is_within(_Ranges(context, sizes, _INT64).of(value)):
            return True
        if _is_within(_Ranges(context, sizes, (-_GREATEST, _GREATEST)).of(value)):
            context.assume(SMALL_INTEGERS_ASSUMPTION)
            return True
    limits = torch.iinfo(dtype)
    within: Formula = conjunction(at_most(limits.min, value), at_most(value, limits.max))
    bounded = (less(TOKENS, _GREATEST), less(BATCH, _GREATEST))
    return context.proves(within, sizes, *bounded)


def _is_within(found: Range) -> bool:
    return _INT64[0] <= found[0] and found[1] <= _INT64[1]


class _Ranges:
    """The ranges of terms, given the axes of their indices and the range of integers that depend on inputs."""

    def __init__(self, context: Context, sizes: Axes, of_inputs: Range) -> None:
        self.context, self.of_inputs = context, of_inputs
        self._known: dict[Atom, Range] = {}
        for axis, size in enumerate(sizes):
            ((variable, _),) = index(axis).summands
            self._known[variable] = (0, max(self.of(size)[1] - 1, 0))  # sizes have no indices

    def of(self, term: Term) -> Range:
        """The range of a term."""
        least = greatest = term.constant
        for atom, factor in term.summands:
            if atom not in self._known:
                self._known[atom] = self._of_atom(atom)
            ends = [factor * end for end in self._known[atom]]
            least, greatest = least + min(ends), greatest + max(ends)
        return least, greatest

    def _of_atom(self, atom: Atom) -> Range:
        match atom:
            case Apply((name, _)):
                depends = name in STATEMENT_FUNCTIONS or name.removesuffix(OF_A_RUN) in self.context.of_inputs
                return self.of_inputs if depends else _INT64
            case Conditional((_, first, second)):
                ranges = self.of(first), self.of(second)
                return min(r[0] for r in ranges), max(r[1] for r in ranges)
            case FloorDivision((dividend, divisor)):
                least, greatest = self.of(dividend)
                return least // int(divisor), greatest // int(divisor)
            case Product((factors,)):
                return reduce(_product, (self.of(as_term(factor)) for factor in factors))
        return -_GREATEST, _GREATEST


def _product(first: Range, second: Range) -> Range:
    ends = [a * b for a in first for b in second]
    return min(ends), max(ends)
