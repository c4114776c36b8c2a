"""Integers of a dtype wrap around where terms do not: a known value is only kept where it fits the dtype."""

from __future__ import annotations

import torch

from orderproof.prover.logic.terms import Formula, Term, at_most, conjunction, less
from orderproof.prover.symbolic.context import Context
from orderproof.prover.symbolic.open_fact import Axes
from orderproof.prover.symbolic.statement import BATCH, TOKENS

_GREATEST_SIZE = 2**31 - 1
_SMALL = 2**24  # numbers that do not reach the limits of int64 in a term of sizes, indices and position ids


def fits(context: Context, value: Term, sizes: Axes, dtype: torch.dtype) -> bool:
    """True if a term is within the limits of a dtype of integers, for all indices within these sizes."""
    if dtype is torch.int64 and value.magnitude < _SMALL:
        return True
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return False
    limits = torch.iinfo(dtype)
    within: Formula = conjunction(at_most(limits.min, value), at_most(value, limits.max))
    bounded = (less(TOKENS, _GREATEST_SIZE), less(BATCH, _GREATEST_SIZE))
    return context.proves(within, sizes, *bounded)
