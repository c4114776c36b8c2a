"""A tensor that consists of parts of other tensors: which part an element comes from is a condition on its index."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from orderproof.logic.terms import Formula, Term, conditional, conjunction, disjunction, implication
from orderproof.theorems.facts.integer_values import as_boolean, as_integer, whole_number
from orderproof.theorems.facts.numbers import WHOLE
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Value, as_cases, merged_cases

Parts = Sequence[tuple[Formula, OpenFact]]


def piecewise(parts: Parts, dtype: torch.dtype) -> OpenFact:
    """The fact about a tensor made of parts.

    Args:
        parts: For each part the condition under which an element comes from it, and the fact about it at the indices of
            the result. The conditions exclude each other and cover everything.
        dtype: The dtype of the result.

    """
    dims = parts[0][1].dims
    value = _value(parts, dtype)
    if value is not None:
        return OpenFact(dims, dtype, value=value)
    ranges = [(condition, fact.ranges()) for condition, fact in parts]
    return OpenFact(
        dims,
        dtype,
        conjunction(*(implication(condition, fact.same) for condition, fact in parts)),
        None,
        disjunction(*(condition & r.hidden for condition, r in ranges)),
        disjunction(*(condition & r.zero for condition, r in ranges)),
        disjunction(*(condition & r.unbounded for condition, r in ranges)),
        disjunction(*(condition & r.low for condition, r in ranges)),
    )


def _value(parts: Parts, dtype: torch.dtype) -> Value | None:
    values = [fact.value for _, fact in parts]
    if any(value is None for value in values):
        return None
    if any(isinstance(value, Term) and as_cases(value) is None for value in values):
        values = [value if value is None else whole_number(value) for value in values]
    exact = [value for value in values if value is not None and not isinstance(value, Cases)]
    if len(exact) == len(parts) and dtype is torch.bool:
        return disjunction(*(condition & as_boolean(v) for (condition, _), v in zip(parts, exact, strict=True)))
    if len(exact) == len(parts) and dtype in WHOLE:
        total = as_integer(exact[-1])
        for (condition, _), value in zip(reversed(parts[:-1]), reversed(exact[:-1]), strict=True):
            total = conditional(condition, as_integer(value), total)
        return total
    cases = [as_cases(value) for value in values]
    if any(one is None for one in cases):
        return None
    return merged_cases(
        [
            (condition & inner, number)
            for (condition, _), one in zip(parts, cases, strict=True)
            if one is not None
            for inner, number in one.pairs
        ]
    )
