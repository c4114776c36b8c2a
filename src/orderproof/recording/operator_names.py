"""The names of operators."""

from __future__ import annotations

from functools import cache

from torch._ops import OpOverload

_NAMESPACES_OF_TORCH = {"aten", "prims", "prim", "profiler"}


def is_of_torch(func: OpOverload) -> bool:
    """True for an operator of torch, False for a custom one."""
    return func.namespace in _NAMESPACES_OF_TORCH


@cache
def operator_name(func: OpOverload) -> str:
    """The name of an operator of torch; of a custom one, which may have the same name, with its namespace."""
    return func.overloadpacket.__name__ if is_of_torch(func) else str(func)
