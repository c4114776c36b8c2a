"""The result of an instruction, as it is compared between a recording and an eager call.

There are as many results as instructions. They are named tuples, which C code compares and hashes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
import torch

from orderproof.prover.recording.value_stack import EMPTY

_SYMBOLS = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device})
_CONTAINERS = frozenset({tuple, list, dict, torch.Size})
_OURS = ("orderproof.prover", "orderproof.models")  # replacements of builtins are objects of these
# In a handler, Python keeps on the stack which exception is handled around it, which may be ours.
_UNSEEN = (FunctionType, MethodType, BuiltinFunctionType, BaseException)
_MAX_PARTS = 16  # of a container whose contents are compared
_DEPTH = 3
_CLOSE = 1e-9  # of numbers that sympy and Python compute from sizes


class Plain(NamedTuple):
    """A number, text or another plain value: `1`, `1.0` and `True` differ."""

    kind: type
    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


class Symbol(NamedTuple):
    """A number that a recording computes from open sizes."""

    kind: type
    expression: Any

    def __repr__(self) -> str:
        return str(self.expression)


class Container(NamedTuple):
    """A tuple, list or dictionary of such results."""

    kind: type
    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.kind.__name__}{self.parts}"


class Other(NamedTuple):
    """A class, or an object of a class; its contents are not compared."""

    kind: type

    def __repr__(self) -> str:
        return self.kind.__name__


class Unseen(NamedTuple):
    """No value, or one that may differ between a recording and a call."""


_UNSEEN_RESULT = Unseen()
Result = Plain | Symbol | Container | Other | Unseen


def described(value: Any, depth: int = 0) -> Result:
    """A value as it is compared. No code of a model runs here."""
    kind = type(value)
    if kind in _PLAIN:
        return Plain(kind, value if value == value else "nan")
    if (number := _SYMBOLS.get(kind)) is not None:
        return Symbol(number, value.node._expr)
    if value is EMPTY or issubclass(kind, _UNSEEN) or str(kind.__module__).startswith(_OURS):
        return _UNSEEN_RESULT
    if issubclass(kind, type):
        return Other(value)
    if depth < _DEPTH and kind in _CONTAINERS and len(value) <= _MAX_PARTS:
        parts = tuple(described(x, depth + 1) for x in (value.items() if kind is dict else value))
        compared = all(isinstance(x, Plain | Symbol | Container) for x in parts)
        return Container(kind, parts) if compared else _UNSEEN_RESULT
    if kind.__module__ == "numpy" and issubclass(kind, np.generic):
        return Plain(kind, str(value))
    return Other(kind)


def is_same(recorded: Result, eager: Result, value_of: Callable[[Any], Any]) -> bool:
    """True if a result of a recording is that of an eager call, where symbols have the values of `value_of`."""
    if recorded is eager or isinstance(recorded, Unseen) or isinstance(eager, Unseen):
        return True
    if isinstance(recorded, Symbol):
        if recorded.kind is bool:  # in an eager call, a comparison is decided
            return False
        value = value_of(recorded.expression)
        if value is None:
            return True
        if recorded.kind is float and isinstance(eager, Plain) and eager.kind is float:
            return math.isclose(value, float(eager.value), rel_tol=_CLOSE)
        return Plain(recorded.kind, recorded.kind(value)) == eager
    if isinstance(recorded, Container) and isinstance(eager, Container):
        return (
            recorded.kind is eager.kind
            and len(recorded.parts) == len(eager.parts)
            and all(is_same(x, y, value_of) for x, y in zip(recorded.parts, eager.parts, strict=True))
        )
    return recorded == eager
