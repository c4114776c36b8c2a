"""Operators that write to running statistics against their schemas, such as `batch_norm` in training."""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import Tensor
from torch._ops import OpOverload

_FLAGS_OF_STATISTICS = ("training", "train", "use_input_stats")


def hidden_write(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """How an operator writes to an operand against its schema, as to running statistics; empty if it does not."""
    if not _has_statistics(func):
        return ""
    given = {a.name: x for a, x in zip(func._schema.arguments, args, strict=False)} | kwargs
    statistics = any(isinstance(given.get(name), Tensor) for name in ("running_mean", "running_var"))
    updates = [given[name] for name in _FLAGS_OF_STATISTICS if name in given]
    return f"it writes to running statistics ({func})" if statistics and all(updates) else ""


@cache
def _has_statistics(func: OpOverload) -> bool:
    undeclared = (a for a in func._schema.arguments if a.alias_info is None or not a.alias_info.is_write)
    return any(a.name == "running_mean" for a in undeclared)
