"""The result of an instruction, as it is compared between a recording and an eager call.

There are as many results as instructions. They are named tuples, which C code compares and hashes.
"""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import numpy as np
import torch

from orderproof.prover.recording.value_stack import EMPTY

_SYMBOLS = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device})
_SEQUENCES = frozenset({tuple, list, deque, torch.Size})
_MAPPINGS = frozenset({dict, OrderedDict, defaultdict})
_SETS = frozenset({set, frozenset})
_FUNCTIONS = (
    FunctionType, MethodType, BuiltinFunctionType, MethodWrapperType, MethodDescriptorType, WrapperDescriptorType
)  # fmt: skip
_OURS = ("orderproof.prover", "orderproof.models")  # replacements of builtins are objects of these
_MAX_PARTS = 16  # of a container that are compared
_MAX_SHOWN = 3  # of these
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
    """A tuple, list, dictionary or another container: its length, if it has one, and its first parts."""

    kind: type
    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        length, *others = self.parts or ("none",)
        shown = ", ".join(map(repr, others[:_MAX_SHOWN]))
        return f"{self.kind.__name__} of {length}{': ' * bool(others)}{shown}{', ...' * (len(others) > _MAX_SHOWN)}"


class Class(NamedTuple):
    """A class."""

    kind: type

    def __repr__(self) -> str:
        return f"the class {self.kind.__name__}"


class Other(NamedTuple):
    """An object of a class; its contents are not compared. Functions are of one class."""

    kind: type

    def __repr__(self) -> str:
        return self.kind.__name__


class Unseen(NamedTuple):
    """No value, or one that may differ between a recording and a call."""


_UNSEEN_RESULT = Unseen()
Result = Plain | Symbol | Container | Class | Other | Unseen


def described(value: Any, depth: int = 0) -> Result:
    """A value as it is compared. No code of a model runs here."""
    kind = type(value)
    if kind in _PLAIN:
        return Plain(kind, value if value == value else "nan")
    if (number := _SYMBOLS.get(kind)) is not None:
        return Symbol(number, value.node._expr)
    if value is EMPTY:
        return _UNSEEN_RESULT
    if str(kind.__module__).startswith(_OURS):
        return Other(kind) if depth else _UNSEEN_RESULT
    if issubclass(kind, type):
        return Class(value)
    if issubclass(kind, _FUNCTIONS):
        return Other(FunctionType) if depth or not _is_of_ours(value) else _UNSEEN_RESULT
    if depth < _DEPTH and (parts := _parts(kind, value)) is not None:
        return Container(kind, tuple(described(x, depth + 1) for x in parts))
    if kind.__module__ == "numpy" and issubclass(kind, np.generic):
        return Plain(kind, str(value))
    if issubclass(kind, enum.Enum) or "__members__" in vars(kind):  # an enumeration of Python, or of torch
        return Plain(kind, value.name)
    return Other(kind)


def _parts(kind: type, value: Any) -> list[Any] | None:
    """The compared parts of a container: its length and its first parts; of a set its texts and classes."""
    if kind in _SEQUENCES:
        return [len(value), *islice(value, _MAX_PARTS)]
    if kind in _MAPPINGS:
        return [len(value), *islice(value.items(), _MAX_PARTS)]
    if kind in _SETS:
        return [len(value), *sorted(str(x) for x in value if type(x) is str or isinstance(x, type))[:_MAX_PARTS]]
    if kind is partial:
        return [value.func, *value.args, *value.keywords.items()]
    return list(value.__args__) if kind is GenericAlias else None


def _is_of_ours(function: Any) -> bool:
    function = getattr(function, "__func__", function)
    return isinstance(function, FunctionType) and str(function.__globals__.get("__name__")).startswith(_OURS)


def is_same(recorded: Result, eager: Result, value_of: Callable[[Any], Any]) -> bool:
    """True if a result of a recording is that of an eager call, where symbols have the values of `value_of`."""
    if recorded is eager or isinstance(recorded, Unseen):
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
