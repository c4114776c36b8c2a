"""The contents of one object: read, compared with those that it had before, and put back."""

from __future__ import annotations

import array
import collections
import functools
import hashlib
import pickle
import random
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.library_messages import suppress_warnings
from orderproof.recording.elements import Range
from orderproof.recording.memory import EVERYWHERE

MISSING = object()
WHOLE = object()  # the key of contents that are no mapping
_PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, torch.Size, range)
_PLAIN_TYPES = frozenset(_PLAIN)
_NOT_STATE = frozenset({  # of classes and functions: what Python itself keeps there
    "__dict__", "__weakref__", "__doc__", "__annotations__", "__abstractmethods__", "_abc_impl", "__builtins__",
})  # fmt: skip
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_SHOWN = (
    *_PLAIN, list, dict, set, frozenset, tuple, collections.deque, slice, type, FunctionType, MethodType, ModuleType,
    Tensor, nn.Module, torch.Generator, random.Random, array.array, bytearray, memoryview, BuiltinFunctionType,
    CellType, MappingProxyType, ContextVar, Token, re.Pattern, functools.partial, functools._lru_cache_wrapper,
)  # fmt: skip
Items = tuple[tuple[Any, ...], tuple[Any, ...]]  # keys and values: a key may be a symbol, which cannot be hashed


@dataclass(slots=True)
class State:
    """The contents of one object: how to read them, and how to put them back.

    Attributes:
        path: Where the object is.
        read: Its contents now: the objects that it holds, in order; of a mapping its keys and its values.
        restore: Puts contents back; None if that is not possible.
        before: Its contents at first.

    """

    path: str
    read: Callable[[], Any]
    restore: Callable[[Any], object] | None
    before: Any

    def differs(self) -> bool:
        """True if the contents are not those at first."""
        return not _is_same(self.before, self.read())

    def changes(self) -> list[str]:
        """The names of what differs; it is put back where that is possible."""
        if not self.differs():
            return []
        changed = [self.path if key is WHOLE else f"{self.path}.{key}".removeprefix(".") for key in self.other_keys()]
        if self.restore is not None:
            self.restore(self.before)
        return changed or [f"the order of {self.path}"]

    def other_keys(self) -> list[Any]:
        """The keys under which a mapping holds something else; `WHOLE` for another object that differs."""
        now = self.read()
        if _is_same(self.before, now):
            return []
        return _other_keys(self.before, now) if _is_mapping(now) else [WHOLE]

    def put_back(self, key: Any) -> None:
        """Let a mapping hold under one key what it held at first; all contents for `WHOLE`."""
        if self.restore is None:
            return
        contents = self.before
        if key is not WHOLE:
            old, new = (dict(zip(*pairs, strict=True)) for pairs in (self.before, self.read()))
            kept = {k: old.get(k, MISSING) if _hashable(k) == key else x for k, x in {**old, **new}.items()}
            kept = {k: x for k, x in kept.items() if x is not MISSING and (k in new or _hashable(k) == key)}
            contents = (tuple(kept), tuple(kept.values()))
        self.restore(contents)


class Variables:
    """Global variables of one module of Python, of which the code of a model names more and more.

    Args:
        variables: The variables of the module.

    """

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables
        self.paths: dict[str, str] = {}  # by name

    @property
    def path(self) -> str:
        """The path of the first variable that is another object; empty if none is."""
        pairs = zip(self.paths.values(), self.before, self.read(), strict=True)
        return next((path for path, old, new in pairs if not _is_same(old, new)), "")

    def differs(self) -> bool:
        """True if a variable is another object than at first."""
        return not _is_same(self.before, self.read())

    def read(self) -> tuple[Any, ...]:
        """The objects under the names."""
        get = self.variables.get
        return tuple([get(name, MISSING) for name in self.paths])

    before: tuple[Any, ...] = ()

    def keep(self) -> None:
        """Keep which objects the variables are now."""
        self.before = self.read()

    def changes(self) -> list[str]:
        """The paths of variables that are other objects, which are put back."""
        now = self.read()
        if _is_same(self.before, now):
            return []
        pairs = zip(self.paths.items(), self.before, now, strict=True)
        other = [(name, path, old) for (name, path), old, new in pairs if not _is_same(old, new)]
        for name, _, old in other:
            self.variables[name] = old
        return [path for _, path, _ in other]


class EmptyDictionaries:
    """Dictionaries without items, such as the attributes of most tensors and functions."""

    def __init__(self) -> None:
        self.found: list[tuple[str, dict[Any, Any]]] = []

    @property
    def path(self) -> str:
        """The path of the first one that has an item; empty if none has."""
        return next((path for path, held in self.found if held), "")

    def differs(self) -> bool:
        """True if one of them has an item."""
        return any(held for _, held in self.found)

    def changes(self) -> list[str]:
        """The paths of the items, which are taken away."""
        names = [f"{path}.{key}".removeprefix(".") for path, held in self.found if held for key in held]
        for _, held in self.found:
            held.clear()
        return names


def _is_mapping(contents: Any) -> bool:
    return isinstance(contents, tuple) and len(contents) == 2 and all(isinstance(x, tuple) for x in contents)


def _other_keys(before: Items, now: Items) -> list[Any]:
    """The keys whose values differ, and those that only one of two mappings has."""
    old = {_hashable(key): x for key, x in zip(*before, strict=True)}
    new = {_hashable(key): x for key, x in zip(*now, strict=True)}
    return [key for key in {**old, **new} if not _is_same(old.get(key, MISSING), new.get(key, MISSING))]


def _hashable(key: Any) -> Any:
    return str(key) if isinstance(key, torch.SymInt) or not isinstance(key, _PLAIN) else key


def _is_same(first: Any, second: Any) -> bool:
    """True if two contents hold the same objects; numbers and texts are compared by value."""
    if first is second:
        return True
    kind = type(first)
    if kind is not type(second):
        return False
    if kind is tuple:
        if len(first) != len(second):
            return False
        return all(map(is_, first, second)) or all(map(_is_same, first, second))
    return isinstance(first, _PLAIN) and repr(first) == repr(second)


def is_plain(value: object) -> bool:
    """True of a number, a text, or another value without parts that change."""
    return type(value) in _PLAIN_TYPES or isinstance(value, _PLAIN)


def shows_its_state(value: Any) -> bool:
    """True of an object whose contents are compared: one of Python, or of a class in C that is known here."""
    kind = type(value)
    return issubclass(kind, _SHOWN) or kind.__module__ == "numpy" or bool(kind.__flags__ & _MADE_IN_PYTHON)


def items(mapping: dict[Any, Any], hidden: Collection[str] = ()) -> Items:
    """The keys and the values of a mapping in their order, without those under hidden names."""
    if not hidden and type(mapping) is dict:
        return tuple(mapping), tuple(mapping.values())
    pairs = [(k, x) for k, x in _pairs(mapping) if not (hidden and type(k) is str and k in hidden)]
    return tuple(k for k, _ in pairs), tuple(x for _, x in pairs)


def _pairs(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
    try:
        return list((collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict).items(mapping))
    except TypeError:  # an ordered dictionary hashes its keys to read them
        return list(dict.items(mapping))


def restore_items(mapping: dict[Any, Any], old: Items, hidden: Collection[str] = ()) -> None:
    """Put the items of a mapping back in their order; those that are hidden stay."""
    kind: Any = collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict
    kept = [(k, x) for k, x in _pairs(mapping) if type(k) is str and k in hidden]
    kind.clear(mapping)
    for key, value in (*zip(*old, strict=True), *kept):
        kind.__setitem__(mapping, key, value)


def class_items(kind: type) -> Items:
    """The attributes of a class that may be state."""
    return items(dict(vars(kind)), _NOT_STATE)


def restore_class(kind: type, old: Items) -> None:
    """Put the attributes of a class back."""
    before = dict(zip(*old, strict=True))
    for name in set(class_items(kind)[0]) - before.keys():
        delattr(kind, name)
    for name, value in before.items():
        if vars(kind).get(name, MISSING) is not value:
            setattr(kind, name, value)


def refill(value: Any, old: tuple[Any, ...]) -> None:
    """Put the items back that a list, a deque or a set had."""
    value.clear()
    (value.update if isinstance(value, set) else value.extend)(old)


def slots_of(kind: type) -> list[str]:
    """The names of the attributes that a class keeps outside of dictionaries."""
    names = vars(kind).get("__slots__", ())
    listed = [names] if isinstance(names, str) else names
    private = f"_{kind.__name__.lstrip('_')}"
    found = [f"{private}{n}" if n.startswith("__") and not n.endswith("__") else n for n in listed]
    return [name for name in found if name not in _NOT_STATE]


def restore_slots(value: Any, names: Sequence[str], old: tuple[Any, ...]) -> None:
    """Put the objects back that slots held; one that was empty keeps what it has."""
    for name, held in zip(names, old, strict=True):
        if held is not MISSING and getattr(value, name, MISSING) is not held:
            setattr(value, name, held)


def cell_contents(cell: CellType) -> tuple[Any, ...]:
    """The value of a variable of a closure; nothing if it has none yet."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def position(iterator: Iterator[Any]) -> tuple[Any, ...]:
    """Where an iterator is: the local variables of a generator, or what makes another one at the same place."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return () if frame is None else (frame.f_lasti, *frame.f_locals.values())
    if type(iterator).__flags__ & _MADE_IN_PYTHON:  # its attributes are compared
        return ()
    try:
        return tuple(_flat(iterator.__reduce__()))
    except TypeError:  # it shows nothing
        return ()


def _flat(values: Any) -> Iterator[Any]:
    for value in values if isinstance(values, tuple) else (values,):
        if isinstance(value, Iterator):
            yield from position(value)
        elif isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value


def generator_state(value: Any) -> tuple[Callable[[], Any], Callable[[Any], object]] | None:
    """How to read and to restore the state of a random generator; None for another object."""
    read: Callable[[], Any]
    restore: Callable[[Any], object]
    numpy = sys.modules.get("numpy")
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        read, restore = value.getstate, value.setstate
    elif isinstance(value, torch.Generator):
        read, restore = value.get_state, value.set_state
    elif numpy is not None and isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        read, restore = lambda: bits.state, lambda old: setattr(bits, "state", old)
    elif numpy is not None and isinstance(value, numpy.random.RandomState):
        read, restore = lambda: value.get_state(legacy=False), value.set_state
    else:
        return None
    before: Any = read()
    return lambda: hashlib.sha1(pickle.dumps(read()), usedforsecurity=False).hexdigest(), lambda _: restore(before)


def memory_of_buffer(value: Any) -> list[Range]:
    """The memory of an object with a buffer; nothing if it has none, everything if it has gaps."""
    try:
        memory = memoryview(value).cast("B")
    except TypeError:
        return [EVERYWHERE]
    if not memory.nbytes:
        return []
    with suppress_warnings():  # that the buffer is not writable: only its address is read
        start = torch.frombuffer(memory, dtype=torch.uint8).data_ptr()
    return [(start, start + memory.nbytes)]


def restore_buffer(value: Any, old: bytes) -> None:
    """Put the bytes back that a buffer had, if it can be written."""
    memory = memoryview(value)
    if memory.contiguous and not memory.readonly:
        memory.cast("B")[:] = old


def restore_array(array: Any, old: bytes) -> None:
    """Put the numbers back that an array of numpy had, if it can be written."""
    if array.flags.writeable and not array.dtype.hasobject:
        array[...] = sys.modules["numpy"].frombuffer(old, array.dtype).reshape(array.shape)
