"""The result of an instruction, as it is compared between a recording and an eager call.

There are as many results as instructions. They are named tuples, which C code compares and hashes.
"""

from __future__ import annotations

import enum
import math
import sys
from array import array
from collections import deque
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import PurePath
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
_SEQUENCES = (tuple, list, deque)
_SETS = (set, frozenset)
_VALUES = (Decimal, Fraction, date, time, timedelta, PurePath, bytearray, array)
_FUNCTIONS = (
    FunctionType, MethodType, BuiltinFunctionType, MethodWrapperType, MethodDescriptorType, WrapperDescriptorType
)  # fmt: skip
_OURS = ("orderproof.prover", "orderproof.models")  # replacements of builtins are objects of these
_MAX_PARTS = 1000  # of a value that are compared
_MAX_SHOWN = 3  # of these
_DEPTH = 8
_CLOSE = 1e-9  # of numbers that sympy and Python compute from sizes


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


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

    kind: Any  # the class, or its name
    parts: tuple[Any, ...]

    @property
    def has_objects(self) -> bool:
        """True if some part, at any depth, is an object whose contents are not compared."""
        return any(isinstance(x, Other | Unseen) or (isinstance(x, Container) and x.has_objects) for x in self.parts)

    def __repr__(self) -> str:
        length, *others = self.parts or ("none",)
        shown = ", ".join(map(repr, others[:_MAX_SHOWN]))
        return f"{_name(self.kind)} of {length}{': ' * bool(others)}{shown}{', ...' * (len(others) > _MAX_SHOWN)}"


class Class(NamedTuple):
    """A class."""

    kind: Any  # the class, or its name

    def __repr__(self) -> str:
        return f"the class {_name(self.kind)}"


class Other(NamedTuple):
    """An object of a class; its contents are not compared."""

    kind: Any  # the class, or its name

    def __repr__(self) -> str:
        return _name(self.kind)


class Unseen(NamedTuple):
    """No value, or one that may differ between a recording and a call."""


_UNSEEN_RESULT = Unseen()
Result = Plain | Symbol | Container | Class | Other | Unseen


def described(value: Any) -> Result:
    """A value as it is compared. No code of a model runs here."""
    return _described(value, 0, [_MAX_PARTS])


def _described(value: Any, depth: int, left: list[int]) -> Result:
    kind = type(value)
    if kind in _PLAIN:
        if kind is float and (value != value or value == 0):
            return Plain(kind, str(value))  # not a number, and zeros by their sign
        return Plain(kind, value)
    if (number := _SYMBOLS.get(kind)) is not None:
        return Symbol(number, value.node._expr)
    if value is EMPTY:
        return _UNSEEN_RESULT
    if str(kind.__module__).startswith(_OURS):
        return Other(kind) if depth else _UNSEEN_RESULT
    if issubclass(kind, type):
        return Class(_known_class(value))
    if issubclass(kind, _FUNCTIONS):
        replaced = type(getattr(value, "__self__", None)).__module__.startswith(_OURS)
        return _UNSEEN_RESULT if replaced and not depth else Plain(FunctionType, _function_name(value))
    if depth < _DEPTH and left[0] > 0 and (parts := _parts(kind, value)) is not None:
        left[0] -= len(parts)
        found = [_described(x, depth + 1, left) for x in parts]
        if issubclass(kind, _SETS):  # after the length, in an order that does not depend on hashes
            found[1:] = sorted(found[1:], key=repr)
        return Container(_known_class(kind), tuple(found))
    return _without_contents(kind, value)


def _without_contents(kind: type, value: Any) -> Result:
    """A member of an enumeration, a number of numpy, or an object of which only the class is compared."""
    if kind.__module__ == "numpy" and issubclass(kind, np.generic):
        return Plain(kind, str(value))
    if issubclass(kind, enum.Enum):
        return Plain(kind, value._name_)
    if kind.__module__.partition(".")[0] == "torch" and "__members__" in vars(kind):  # an enumeration in C++
        return Plain(kind, value.name)
    return Other(_known_class(kind))


def _parts(kind: type, value: Any) -> list[Any] | None:
    """The compared parts of a container: its length and its first parts. A subclass is compared as its base is."""
    # Methods of the base class: those of a subclass may be code of a model.
    base: Any = next((one for one in (*_SEQUENCES, *_SETS, dict) if issubclass(kind, one)), None)
    if base is not None:
        parts = list(islice(base.items(value) if base is dict else base.__iter__(value), _MAX_PARTS))
        return [base.__len__(value), *parts]
    if issubclass(kind, str | int | float | complex | bytes):
        base = next(one for one in (str, int, float, complex, bytes) if issubclass(kind, one))
        return [base.__repr__(value)]
    if issubclass(kind, BaseException):
        arguments = vars(BaseException)["args"].__get__(value)
        return [len(arguments), *arguments]
    if kind is partial:
        return [value.func, *value.args, *value.keywords.items()]
    if kind in _VALUES:
        return [value.tobytes() if kind is array else repr(value)]
    if kind in (range, slice):
        return [value.start, value.stop, value.step]
    return list(value.__args__) if kind is GenericAlias else None


def _function_name(function: Any) -> str:
    """The name of a function; of a method that calls an object, that of the object's class."""
    function = function.__func__ if type(function) is MethodType else function
    return str(function.__qualname__ if issubclass(type(function), _FUNCTIONS) else type(function).__qualname__)


def _known_class(kind: type) -> Any:
    """The class, or its name if a call made it: each call makes another one."""
    module = vars(sys.modules.get(kind.__module__, sys))
    name = kind.__qualname__
    return kind if kind.__module__ == "builtins" or module.get(name) is kind else f"{kind.__module__}.{name}"


def is_same(recorded: Result, eager: Result, value_of: Callable[[Any], Any], *, rolled: bool = False) -> bool:
    """True if a result of a recording is that of an eager call, where symbols have the values of `value_of`.

    ``rolled``: a recording with a loop of open length, of which it has two iterations. Containers of objects, such as a
    list to which each iteration appends a tensor, are then compared by their class only.
    """
    if recorded is eager or isinstance(recorded, Unseen):
        return True
    if isinstance(recorded, Symbol):
        if recorded.kind is bool:  # in an eager call, a comparison is decided
            return False
        value = value_of(recorded.expression)
        if value is None:
            return True
        if recorded.kind is float and isinstance(eager, Plain) and eager.kind is float:
            real = float(eager.value)
            signs = value != 0 or real != 0 or math.copysign(1, real) == math.copysign(1, value)
            return signs and math.isclose(value, real, rel_tol=_CLOSE)
        return Plain(recorded.kind, recorded.kind(value)) == eager
    if isinstance(recorded, Container) and isinstance(eager, Container):
        if rolled and recorded.kind == eager.kind and recorded.has_objects:
            return True
        return (
            recorded.kind == eager.kind
            and len(recorded.parts) == len(eager.parts)
            and all(is_same(x, y, value_of, rolled=rolled) for x, y in zip(recorded.parts, eager.parts, strict=True))
        )
    return recorded == eager
