"""Operators that create a tensor of numbers.

Lemma. Such a tensor does not depend on the tokens.
  1. It is the same in both runs, with a known value at every index; memory that was not written holds anything.
  2. A tensor of one number is the same for every index. One whose numbers follow from the index does not move.

Machine-checked (proofs/rules/fact.v): fact_constant.
Machine-checked (proofs/symbolic/moved_axes.v): free_axis.
Not machine-checked: the value at each index; memory that was not written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from orderproof.logic.terms import FALSE, TRUE, Term, as_term
from orderproof.recording.open_sizes import OpaqueNumber
from orderproof.theorems.facts.integer_values import is_whole
from orderproof.theorems.facts.moved_fact import NOTHING, Motion, MovedFact, uniform
from orderproof.theorems.facts.numbers import INTEGERS, WHOLE, beyond_ordinary
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact, Value, dims_of, index
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import number
from orderproof.theorems.walks.operator_rules import operators

ARANGE = operators("arange")


INDEX_MATRIX = operators("linspace", "eye")


@ARANGE.open
def arange(call: OpenOperation) -> OpenFact:
    """Start + step * index."""
    arguments = call.node.args
    start, step = (arguments[0] if len(arguments) > 1 else 0), (arguments[2] if len(arguments) > 2 else 1)
    fact = OpenFact(dims_of(call.shape), call.dtype, unbounded=beyond_ordinary(*arguments))
    start, step = (int(x) if is_whole(x) else x for x in (start, step))  # type: ignore[arg-type]
    first = number(start)
    if call.dtype not in WHOLE or first is None or not isinstance(step, int):
        return fact
    return OpenFact(fact.dims, call.dtype, value=first + index(0) * step if fact.sizes else first)


@ARANGE.moved
@INDEX_MATRIX.moved
def of_indices(call: MovedOperation) -> MovedFact:
    """Numbers that follow from the index alone: the same in both runs."""
    return uniform(call.shape, Motion.STILL)


FULL = operators("full", "full_like", "new_full", "scalar_tensor")


@FULL.open
def full(call: OpenOperation) -> OpenFact:
    """One number."""
    return _filled(call, call.node.args[0 if call.name == "scalar_tensor" else -1])


ZEROS = operators("zeros", "zeros_like", "new_zeros")


@ZEROS.open
def zeros(call: OpenOperation) -> OpenFact:
    """Zero."""
    return _filled(call, 0)


ONES = operators("ones", "ones_like", "new_ones")


@ONES.open
def ones(call: OpenOperation) -> OpenFact:
    """One."""
    return _filled(call, 1)


@FULL.moved
@ZEROS.moved
@ONES.moved
def one_number(call: MovedOperation) -> MovedFact:
    """A tensor of one number."""
    return uniform(call.shape, Motion.FREE)


def _filled(call: OpenOperation, value: Any) -> OpenFact:
    if call.dtype.is_floating_point and isinstance(value, Term | OpaqueNumber):  # one that is computed from sizes
        return OpenFact(dims_of(call.shape), call.dtype, unbounded=TRUE if isinstance(value, OpaqueNumber) else FALSE)
    if call.dtype.is_complex and isinstance(value, int | float):  # complex numbers have no values in facts
        zero = TRUE if value == 0 else FALSE
        return OpenFact(dims_of(call.shape), call.dtype, zero=zero, unbounded=beyond_ordinary(value))
    return OpenFact(dims_of(call.shape), call.dtype, value=_constant(value, call.dtype))


def _constant(value: Any, dtype: torch.dtype) -> Value:
    if dtype is torch.bool and isinstance(value, bool | int):
        return TRUE if value else FALSE
    if dtype in INTEGERS and isinstance(value, Term | int | bool):
        return value if isinstance(value, Term) else as_term(int(value))
    if not isinstance(value, int | float) or dtype.is_complex:
        raise NotCovered("a tensor is filled with a number that is not known")
    return Cases(((TRUE, float(torch.tensor(value, dtype=dtype))),))


EMPTY = operators("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")


@EMPTY.open
def empty(call: OpenOperation) -> OpenFact:
    """Memory that was not written: anything, in each run."""
    return OpenFact(dims_of(call.shape), call.dtype, same=FALSE, unbounded=TRUE)


@EMPTY.moved
def moved_empty(call: MovedOperation) -> MovedFact:
    """Memory that was not written."""
    return replace(uniform(call.shape, Motion.FREE), written=NOTHING)
