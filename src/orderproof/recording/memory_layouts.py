"""Operators that compute something else than they state if elements of a tensor share memory: torch 2.13 on the CPU.

- The median along a dimension of an expanded tensor reads memory of other elements.
- Fused attention writes its result with the strides of the query, whose elements must not share memory.
- A write to memory that overlaps itself writes several elements at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import statically_known_true

from orderproof.recording.operator_names import operator_name

_MEDIANS = ("median", "nanmedian")
_WITH_STRIDES = {"empty_strided": 0, "new_empty_strided": 1}  # the place of the sizes, before that of the strides


def unsound_layout(func: OpOverload, args: Sequence[Any]) -> str:
    """Why the result of an operator does not follow from its operands, as their elements share memory; or empty."""
    name = operator_name(func)
    if name in _MEDIANS and func._overloadname.startswith("dim") and _is_expanded(args[0]):
        return f"torch reads other memory for the median of an expanded tensor ({func})"
    if name == "scaled_dot_product_attention" and _may_overlap(args[0].shape, args[0].stride()):
        return f"torch writes attention of queries that share memory to memory that is shared ({func})"
    if name in _WITH_STRIDES and _may_overlap(*args[_WITH_STRIDES[name] :][:2]):
        return f"elements of a new tensor share memory ({func})"
    return ""


def _is_expanded(tensor: Tensor) -> bool:
    """True if a tensor has one element of memory for several indices of a dimension."""
    return any(step == 0 for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size != 1)


def _may_overlap(sizes: Sequence[Any], strides: Sequence[Any]) -> bool:
    """False if each step along a dimension leads beyond all elements along those with shorter steps.

    Dimensions that are expanded, all of whose steps are zero, are left out.
    """
    dims = [(size, step) for size, step in zip(sizes, strides, strict=True) if size != 1 and step != 0]
    return not all(
        statically_known_true(step >= other * length) or statically_known_true(other >= step * size)
        for (size, step), (length, other) in combinations(dims, 2)
    )
