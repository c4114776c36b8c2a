"""Facts about numbers among the arguments of an operator, and about integers of which only equality is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from orderproof.logic.terms import FALSE, TRUE, Formula, Term, apply, as_term, holds
from orderproof.number_limits import largest_ordinary
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Value, index

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
WHOLE = (*INTEGERS, torch.float64, torch.float32)  # dtypes of numbers that may be known as an integer term


def with_function(fact: OpenFact, name: str, loops: Sequence[Term] = ()) -> OpenFact:
    """The same integers or booleans in both runs, as an arbitrary function of their indices and those of loops."""
    if fact.dtype in INTEGERS and (fact.unbounded is not FALSE or fact.hidden is not FALSE):
        return fact  # the value of an integer says nothing of its size
    indices = [*(index(k) for k in range(len(fact.sizes))), *loops]
    if fact.dtype is torch.bool:
        return replace(fact, value=holds(name, *indices))
    return replace(fact, value=apply(name, *indices)) if fact.dtype in INTEGERS else fact


def number_fact(number: Any, dtype: torch.dtype = torch.float32) -> OpenFact:
    """The fact about a number among the arguments, as a tensor without dimensions."""
    if isinstance(number, bool):
        return OpenFact((), torch.bool, value=TRUE if number else FALSE)
    if isinstance(number, Term | int):
        return OpenFact((), torch.int64, value=as_term(number) if isinstance(number, int) else number)
    if isinstance(number, float):
        value: Value = Cases(((TRUE, number),))
        return OpenFact((), dtype, value=value)
    return OpenFact((), dtype, unbounded=TRUE)


def of_number(fact: OpenFact, value: float) -> OpenFact:
    """The fact about a tensor of one number, in the shape of another."""
    if fact.dtype is torch.bool:
        return OpenFact(fact.dims, fact.dtype, value=TRUE if value else FALSE)
    if not fact.dtype.is_floating_point and not fact.dtype.is_complex:
        return OpenFact(fact.dims, fact.dtype, value=as_term(int(value)))
    return OpenFact(fact.dims, fact.dtype, value=Cases(((TRUE, float(value)),)))


def beyond_ordinary(*numbers: Any) -> Formula:
    """True if one of these numbers is as large as a mask, infinite or NaN: what is scaled by it may be anything."""
    large = any(type(x) in (int, float) and not abs(x) < largest_ordinary() for x in numbers)
    return TRUE if large else FALSE
