"""Operators that create a tensor of numbers: the same in both runs, with a known value at every index.

Machine-checked (proofs/rules/fact.v): fact_constant.
Not machine-checked: the value at each index.
"""

from __future__ import annotations

from typing import Any

import torch

from orderproof.logic.terms import FALSE, TRUE, Term, as_term
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact, Value, dims_of, index
from orderproof.theorems.walks.open_operation import INTEGERS, Application, beyond_ordinary, open_rule
from orderproof.theorems.walks.operation import number


@open_rule("arange")
def arange(call: Application) -> OpenFact:
    """Start + step * index."""
    arguments = call.node.args
    start, step = (arguments[0] if len(arguments) > 1 else 0), (arguments[2] if len(arguments) > 2 else 1)
    fact = OpenFact(dims_of(call.shape), call.dtype, unbounded=beyond_ordinary(*arguments))
    first = number(start)
    if call.dtype not in INTEGERS or first is None or not isinstance(step, int):
        return fact
    return OpenFact(fact.dims, call.dtype, value=first + index(0) * step if fact.sizes else first)


@open_rule("full", "full_like", "new_full", "scalar_tensor")
def full(call: Application) -> OpenFact:
    """One number."""
    return _filled(call, call.node.args[0 if call.name == "scalar_tensor" else -1])


@open_rule("zeros", "zeros_like", "new_zeros")
def zeros(call: Application) -> OpenFact:
    """Zero."""
    return _filled(call, 0)


@open_rule("ones", "ones_like", "new_ones")
def ones(call: Application) -> OpenFact:
    """One."""
    return _filled(call, 1)


@open_rule("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
def empty(call: Application) -> OpenFact:
    """Memory that was not written: anything, in each run."""
    return OpenFact(dims_of(call.shape), call.dtype, same=FALSE, unbounded=TRUE)


def _filled(call: Application, value: Any) -> OpenFact:
    return OpenFact(dims_of(call.shape), call.dtype, value=_constant(value, call.dtype))


def _constant(value: Any, dtype: torch.dtype) -> Value:
    if dtype is torch.bool and isinstance(value, bool | int):
        return TRUE if value else FALSE
    if dtype in INTEGERS and isinstance(value, Term | int | bool):
        return value if isinstance(value, Term) else as_term(int(value))
    if not isinstance(value, int | float) or dtype.is_complex:
        raise NotCovered("a tensor is filled with a number that is not known")
    return Cases(((TRUE, float(torch.tensor(value, dtype=dtype))),))
