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
from itertools import chain, islice
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

from orderproof.recording.value_stack import EMPTY

_SYMBOLS: dict[Any, Any] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device})
_SEQUENCES = (tuple, list, deque)
_SETS = (set, frozenset)
_VALUES = (Decimal, Fraction, date, time, timedelta, PurePath, bytearray, array)
_FUNCTIONS = (
    FunctionType, MethodType, BuiltinFunctionType, MethodWrapperType, MethodDescriptorType, WrapperDescriptorType
)  # fmt: skip
_OURS = ("orderproof.recording", "orderproof.models")  # replacements of builtins are objects of these
_MAX_PARTS = 1000  # of a value that are compared
_MAX_SHOWN = 3  # of these
_DEPTH = 8
_new: Any = tuple.__new__  # of a named tuple, in a third of the time of its class
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

    def __repr__(self) -> str:
        length, *others = self.parts or ("none",)
        shown = ", ".join(map(repr, others[:_MAX_SHOWN]))
        return f"{_name(self.kind)} of {length}{': ' * bool(others)}{shown}{', ...' * (len(others) > _MAX_SHOWN)}"


class Filled(NamedTuple):
    """A list to which each iteration of a loop of open length appends a tensor; a recording has two iterations."""

    def __repr__(self) -> str:
        return "list"


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
_FILLED = Filled()
Result = Plain | Symbol | Container | Filled | Class | Other | Unseen


Form = Callable[[Any, int, list[int]], Result]  # a value, its depth in containers, and how many parts may follow


class Descriptions:
    """Values as they are compared. No code of a model runs here.

    How values of a class are described is found once: a call has thousands of values of few classes.
    """

    def __init__(self) -> None:
        self._forms: dict[int, tuple[type, Form]] = {}  # by identity: a class may define its own equality
        self._texts: dict[str, Plain] = {}
        self._filled: dict[int, list[Any]] = {}

    def note_filled(self, values: list[Any]) -> None:
        """Note that the iterations of a loop of open length fill a list."""
        self._filled[id(values)] = values

    def of(self, value: Any) -> Result:
        """A value as it is compared."""
        return self._form(type(value))(value, 0, [_MAX_PARTS])

    def _form(self, kind: type) -> Form:
        found = self._forms.get(id(kind))
        if found is None:
            found = self._forms[id(kind)] = kind, self._new_form(kind)
        return found[1]

    def _new_form(self, kind: type) -> Form:
        if kind is str:
            return self._text
        if kind in _PLAIN:
            return _SIGNED.get(kind) or (lambda value, *_: _new(Plain, (kind, value)))
        if (number := _SYMBOLS.get(kind)) is not None:
            return lambda value, *_: Symbol(number, value.node._expr)
        if kind is object:
            return lambda value, *_: _UNSEEN_RESULT if value is EMPTY else Other(kind)
        if str(kind.__module__).startswith(_OURS):
            return lambda _value, depth, _left: Other(kind) if depth else _UNSEEN_RESULT
        if issubclass(kind, type):
            return lambda value, *_: Class(_known_class(value))
        if issubclass(kind, _FUNCTIONS):
            return _function
        simple = _form_without_contents(kind)
        parts = _parts_of(kind)
        return simple if parts is None else self._container_form(kind, parts, simple)

    def _container_form(self, kind: type, parts_of: Callable[[Any], list[Any]], simple: Form) -> Form:
        shown, is_set, form, filled = _known_class(kind), issubclass(kind, _SETS), self._form, self._filled

        def container(value: Any, depth: int, left: list[int]) -> Result:
            if id(value) in filled:
                return _FILLED
            if depth >= _DEPTH or left[0] <= 0:
                return simple(value, depth, left)
            parts, depth = parts_of(value), depth + 1
            left[0] -= len(parts)
            found = [form(type(x))(x, depth, left) for x in parts]
            if is_set:  # after the length, in an order that does not depend on hashes
                found[1:] = sorted(found[1:], key=repr)
            described: Container = _new(Container, (shown, tuple(found)))
            return described

        return container

    def _text(self, value: str, *_: Any) -> Result:
        found = self._texts.get(value)
        if found is None:
            found = self._texts[value] = Plain(str, value)
        return found


def _float(value: float, *_: Any) -> Result:
    if value != value or value == 0:
        return Plain(float, str(value))  # not a number, and zeros by their sign
    return Plain(float, value)


def _complex(value: complex, *_: Any) -> Result:
    return Plain(complex, repr(value))  # which shows the signs of zeros


_SIGNED: dict[type, Form] = {float: _float, complex: _complex}


def _function(value: Any, depth: int, _left: list[int]) -> Result:
    replaced = type(getattr(value, "__self__", None)).__module__.startswith(_OURS)
    return _UNSEEN_RESULT if replaced and not depth else _new(Plain, (FunctionType, _function_name(value)))


def _form_without_contents(kind: type) -> Form:
    """For a member of an enumeration, a number of numpy, or an object of which only the class is compared."""
    if kind.__module__ == "numpy" and issubclass(kind, np.generic):
        return lambda value, *_: Plain(kind, str(value))
    if issubclass(kind, enum.Enum):
        return lambda value, *_: Plain(kind, value._name_)
    if kind.__module__.partition(".")[0] == "torch" and "__members__" in vars(kind):  # an enumeration in C++
        return lambda value, *_: Plain(kind, value.name)
    other = Other(_known_class(kind))
    return lambda *_: other


def _parts_of(kind: type) -> Callable[[Any], list[Any]] | None:
    """The compared parts of a container: its length and its first parts. A subclass is compared as its base is."""
    # Methods of the base class: those of a subclass may be code of a model.
    base: Any = next((one for one in (*_SEQUENCES, *_SETS, dict) if issubclass(kind, one)), None)
    if base is not None:
        if base is dict:
            pairs = dict.items
            return lambda value: [len(pairs(value)), *chain.from_iterable(islice(pairs(value), _MAX_PARTS))]
        return lambda value: [base.__len__(value), *islice(base.__iter__(value), _MAX_PARTS)]
    if issubclass(kind, str | int | float | complex | bytes):
        base = next(one for one in (str, int, float, complex, bytes) if issubclass(kind, one))
        return lambda value: [base.__repr__(value)]
    if issubclass(kind, BaseException):
        arguments = vars(BaseException)["args"].__get__
        return lambda value: [len(arguments(value)), *arguments(value)]
    if kind is partial:
        return lambda value: [value.func, *value.args, *value.keywords.items()]
    if kind in _VALUES:
        return lambda value: [value.tobytes() if kind is array else repr(value)]
    if kind in (range, slice):
        return lambda value: [value.start, value.stop, value.step]
    return (lambda value: list(value.__args__)) if kind is GenericAlias else None


def _function_name(function: Any) -> str:
    """The name of a function; of a method that calls an object, that of the object's class."""
    function = function.__func__ if type(function) is MethodType else function
    return str(function.__qualname__ if issubclass(type(function), _FUNCTIONS) else type(function).__qualname__)


def _known_class(kind: type) -> Any:
    """The class, or its name if a call made it: each call makes another one."""
    module = vars(sys.modules.get(kind.__module__, sys))
    name = kind.__qualname__
    return kind if kind.__module__ == "builtins" or module.get(name) is kind else f"{kind.__module__}.{name}"


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
            real = float(eager.value)
            signs = value != 0 or real != 0 or math.copysign(1, real) == math.copysign(1, value)
            return signs and math.isclose(value, real, rel_tol=_CLOSE)
        return Plain(recorded.kind, recorded.kind(value)) == eager
    if isinstance(recorded, Container) and isinstance(eager, Container):
        return (
            recorded.kind == eager.kind
            and len(recorded.parts) == len(eager.parts)
            and all(is_same(x, y, value_of) for x, y in zip(recorded.parts, eager.parts, strict=True))
        )
    if isinstance(recorded, Filled):
        return isinstance(eager, Container) and eager.kind is list
    return recorded == eager
