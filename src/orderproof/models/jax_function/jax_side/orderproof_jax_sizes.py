"""Sizes that JAX leaves open: expressions of symbols, which are no numbers.

This file runs in the process of JAX: it imports nothing of orderproof.
"""

from __future__ import annotations

import sys
from typing import Any


def is_open(size: Any) -> bool:
    """True of a size that is an expression of open sizes."""
    return type(size).__name__ == "_DimExpr"


class _SizeKind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, int) or is_open(value)


class _Size(metaclass=_SizeKind):
    """A number or an open size."""


def admit_open_sizes() -> None:
    """Let a library that the user imported take open sizes: Penzai checks that the sizes of named axes are ints."""
    for name in ("named_axes", "shapecheck"):
        penzai: Any = sys.modules.get(f"penzai.core.{name}")
        if penzai is not None:
            penzai.int = _Size  # what its own code asks for
