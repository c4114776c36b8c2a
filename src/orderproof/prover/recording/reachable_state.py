"""The state that a forward call can reach from its module: containers, objects, classes, closures, global variables.

Python code keeps state in many places: a counter in a nested dictionary, a class attribute, a default argument, a
global variable that a method names. This module follows references from a module through the objects it holds and the
code of the model, and copies the contents of each mutable object that it meets, one level deep. The walk ends at
`MAX_OBJECTS`, and says so.
"""

from __future__ import annotations

import array
import ctypes
import functools
import hashlib
import pickle
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.library_messages import suppress_warnings
from orderproof.prover.recording.source import is_model_code

MAX_OBJECTS = 20_000
_TENSORS_OF_A_MODULE = ("_parameters", "_buffers")  # the recording replaces and restores them itself
_SCALARS = (int, float, complex, str, bytes, bool)
_LEAVES = (*_SCALARS, type(None), torch.dtype, torch.device, torch.Size)
_DEFINITIONS = (ModuleType, type, FunctionType, BuiltinFunctionType)  # importing one of them is no state
_CHANGED_BY_RECORDINGS = ("orderproof", "sympy", "mpmath")  # sympy registers the numbers of torch's open sizes
_LIBRARIES = ("torch", *_CHANGED_BY_RECORDINGS, "logging", "importlib", "unittest")  # hold no state of the model
_FUNCTION_OF_C = ctypes._CFuncPtr  # type: ignore[attr-defined]
_MISSING = object()


@dataclass(slots=True)
class State:
    """The contents of one object: how to read and to restore them."""

    path: str
    read: Callable[[], Any]
    restore: Callable[[Any], None] | None
    before: Any

    def changes(self) -> list[str]:
        """The names of what differs from `before`; it is restored where that is possible."""
        now = self.read()
        if isinstance(self.before, dict):
            keys = [
                key
                for key in {**self.before, **now}
                if not _same(self.before.get(key, _MISSING), now.get(key, _MISSING))
            ]
            changed = [f"{self.path}.{key}".removeprefix(".") for key in keys]
        else:
            changed = [] if _same(self.before, now) else [self.path]
        if changed and self.restore is not None:
            self.restore(self.before)
        return changed


@dataclass(slots=True)
class ReachableState:
    """The state within reach of a module, and what the walk could not follow."""

    states: list[State]
    complete: bool  # False: the walk ended at `MAX_OBJECTS`
    shared_memory: list[str]  # objects besides tensors that read the memory of a parameter
    functions_of_c: list[str]  # whose answers no profile function sees


def reachable_state(module: nn.Module) -> ReachableState:
    """The state of every mutable object within reach of a module."""
    walk = _Walk([x for x in module.parameters() if not x.is_meta])
    walk.queue.append(("", module))
    walk.queue.extend((name, x) for name, x in (*module.named_parameters(), *module.named_buffers()))
    while walk.queue and len(walk.seen) < MAX_OBJECTS:
        walk.visit(*walk.queue.popleft())
    return ReachableState(walk.states, not walk.queue, walk.shared_memory, walk.functions_of_c)


def _same(first: Any, second: Any) -> bool:
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return isinstance(first, _SCALARS) and bool(first == second)


class _Walk:
    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        self.states: list[State] = []
        self.shared_memory: list[str] = []
        self.functions_of_c: list[str] = []
        self.seen: dict[int, Any] = {}  # keeps each object alive, so that no id is used twice
        self.queue: deque[tuple[str, Any]] = deque()
        self.names: set[str] = {"forward"}  # those that the code met so far uses
        self.unnamed: dict[str, list[tuple[str, Any]]] = {}  # what classes define under other names
        self.slots: dict[type, list[MemberDescriptorType]] = {}  # of the classes met so far

    def add(self, path: str, read: Callable[[], Any], restore: Callable[[Any], None] | None = None) -> None:
        self.states.append(State(path, read, restore, read()))

    def follow(self, path: str, values: Iterable[Any]) -> None:
        self.queue.extend((path, value) for value in values)

    def visit(self, path: str, value: Any) -> None:
        if isinstance(value, _LEAVES) or id(value) in self.seen or _belongs_to_a_library(type(value)):
            return
        if value is sys.modules:  # an import stays: a module that is taken away would be loaded twice
            return
        self.seen[id(value)] = value
        if isinstance(value, Tensor):
            self._mapping(path, value.__dict__)
        elif isinstance(value, ModuleType):
            self._module(path, value)
        elif isinstance(value, type):
            self._class(path, value)
        elif isinstance(value, FunctionType):
            self._function(path, value)
        elif isinstance(value, MethodType):
            self.follow(path, (value.__self__, value.__func__))
        elif isinstance(value, functools.partial):
            self.follow(path, (value.func, *value.args, *value.keywords.values()))
        elif isinstance(value, tuple | frozenset):
            self.follow(path, value)
        elif not self._library_object(path, value):
            self._container(path, value)
            self._attributes(path, value)

    # ------------------------------------------------------------------ containers and objects

    def _container(self, path: str, value: Any) -> None:
        if isinstance(value, dict):
            self._mapping(path, value)
        elif isinstance(value, list | deque):
            self.add(path, lambda: tuple(value), lambda old: _refill(value, old))
            self.follow(path, value)
        elif isinstance(value, set):
            self.add(path, lambda: tuple(sorted(map(id, value))))
            self.follow(path, value)
        elif isinstance(value, _FUNCTION_OF_C):
            self.functions_of_c.append(path)
        elif isinstance(value, bytearray | array.array | memoryview) or type(type(value)).__module__ == "_ctypes":
            self._buffer(path, value)

    def _buffer(self, path: str, value: Any) -> None:
        try:
            memory = memoryview(value).cast("B")
        except (TypeError, ValueError):  # memory with gaps
            return
        if memory.nbytes:
            with suppress_warnings():  # that the buffer is not writable: only its address is read
                start = torch.frombuffer(memory, dtype=torch.uint8).data_ptr()
            self._compare_memory(path, start, memory.nbytes)
        self.add(path, memory.tobytes)

    def _compare_memory(self, path: str, start: int, size: int) -> None:
        """Note an object that shares the memory of a parameter."""
        for x in self.parameters:
            first = x.data_ptr()
            if first < start + size and start < first + x.untyped_storage().nbytes() and first:
                self.shared_memory.append(path)
                return

    def _mapping(self, path: str, value: MutableMapping[Any, Any], *, hidden: tuple[str, ...] = ()) -> None:
        def read() -> dict[Any, Any]:
            return {key: x for key, x in list(value.items()) if key not in hidden}

        def restore(old: dict[Any, Any]) -> None:
            for key in [key for key in value if key not in hidden and key not in old]:
                del value[key]
            value.update(old)

        self.add(path, read, restore)
        for key, x in self.states[-1].before.items():
            self.queue.append((path if key == "_modules" else f"{path}.{key}".removeprefix("."), x))

    def _attributes(self, path: str, value: Any) -> None:
        names = getattr(value, "__dict__", None)
        if isinstance(names, dict):
            self._mapping(path, names, hidden=_TENSORS_OF_A_MODULE if isinstance(value, nn.Module) else ())
        kind = type(value)
        if kind not in self.slots:
            self.slots[kind] = _model_slots(kind)
        if slots := self.slots[kind]:
            self.add(path, lambda: {s.__name__: _slot(s, value) for s in slots})
            self.follow(path, [_slot(s, value) for s in slots])
        self.queue.append((kind.__name__, kind))

    def _library_object(self, path: str, value: Any) -> bool:
        """Add the state of an object whose attributes do not show it."""
        numpy = sys.modules.get("numpy")
        if isinstance(value, random.Random):
            self.add(path, value.getstate, value.setstate)
        elif isinstance(value, torch.Generator):
            self._generator(path, value.get_state, value.set_state)
        elif numpy is not None and isinstance(value, numpy.ndarray):
            self._compare_memory(path, value.__array_interface__["data"][0], value.nbytes)
            self.add(path, functools.partial(numpy.ndarray.tobytes, value))  # a masked array's own method writes
        elif numpy is not None and isinstance(value, numpy.random.Generator):
            bits = value.bit_generator
            self._generator(path, lambda: bits.state, lambda old: setattr(bits, "state", old))
        elif numpy is not None and isinstance(value, numpy.random.RandomState):
            self._generator(path, lambda: value.get_state(legacy=False), value.set_state)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.add(path, lambda: value.cache_info().currsize)
            self.follow(path, (value.__wrapped__,))
        elif isinstance(value, ContextVar):
            self.add(path, lambda: (value.get(None),))
        elif isinstance(value, CellType):
            self.add(path, lambda: (_contents(value),), lambda old: setattr(value, "cell_contents", old[0]))
            self.follow(path, (_contents(value),))
        elif isinstance(value, GeneratorType):
            self.add(path, lambda: _position(value))
        elif isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
            self.add(path, lambda: repr(value.__reduce__()))
        else:
            return False
        return True

    def _generator(self, path: str, read: Callable[[], Any], restore: Callable[[Any], Any]) -> None:
        before = read()
        self.add(path, lambda: hashlib.sha1(pickle.dumps(read())).digest(), lambda _: restore(before))

    # ------------------------------------------------------------------ code

    def _module(self, path: str, module: ModuleType) -> None:
        """The variables of a Python module: by value in a library, followed in the code of a model."""
        if module.__name__.partition(".")[0] in _CHANGED_BY_RECORDINGS:
            return
        variables = vars(module)
        self.add(
            module.__name__,
            lambda: {k: x for k, x in list(variables.items()) if not issubclass(type(x), _DEFINITIONS)},
            functools.partial(_restore_variables, variables),
        )
        if is_model_code(getattr(module, "__file__", None) or ""):
            for name, value in list(variables.items()):
                waiting = self.queue if name in self.names else self.unnamed.setdefault(name, [])
                waiting.append((f"{path}.{name}", value))

    def _class(self, path: str, kind: type) -> None:
        for part in kind.__mro__:
            if not _is_model_class(part) or (part is not kind and id(part) in self.seen):
                continue
            self.seen[id(part)] = part
            self.add(part.__name__, lambda part=part: _namespace(part), functools.partial(_restore_namespace, part))  # type: ignore[misc]
            for name, value in _namespace(part).items():
                inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
                waiting = self.queue if name in self.names else self.unnamed.setdefault(name, [])
                waiting.append((f"{part.__name__}.{name}", inner))

    def _function(self, path: str, function: FunctionType) -> None:
        if not is_model_code(function.__code__.co_filename):
            return
        self.follow(path, function.__defaults__ or ())
        self.follow(path, (function.__kwdefaults__ or {}).values())
        self.follow(path, function.__closure__ or ())
        self._mapping(path, function.__dict__)
        variables = function.__globals__
        for name in _names(function.__code__):
            self.names.add(name)
            self.queue.extend(self.unnamed.pop(name, ()))
            if name in variables:
                self._global(variables, name)

    def _global(self, variables: dict[str, Any], name: str) -> None:
        key = id(variables) ^ hash(name)
        if key in self.seen:
            return
        self.seen[key] = None
        path = f"global {name}"
        self.add(path, lambda: (variables.get(name),), lambda old: variables.__setitem__(name, old[0]))
        self.queue.append((path, variables[name]))


def _refill(value: Any, old: tuple[Any, ...]) -> None:
    value.clear()
    value.extend(old)


def _restore_variables(variables: dict[str, Any], old: dict[str, Any]) -> None:
    for name in [k for k, x in variables.items() if k not in old and not isinstance(x, _DEFINITIONS)]:
        del variables[name]
    variables.update(old)


def _slot(descriptor: MemberDescriptorType, value: Any) -> Any:
    try:
        return descriptor.__get__(value)
    except AttributeError:
        return None


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _position(generator: GeneratorType[Any, Any, Any]) -> tuple[Any, ...]:
    frame = generator.gi_frame
    return () if frame is None else (frame.f_lasti, *frame.f_locals.values())


def _namespace(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("__")}


def _restore_namespace(kind: type, old: dict[str, Any]) -> None:
    for name in [name for name in _namespace(kind) if name not in old]:
        delattr(kind, name)
    for name, value in old.items():
        if vars(kind).get(name) is not value:
            setattr(kind, name, value)


def _belongs_to_a_library(kind: type) -> bool:
    held = issubclass(kind, nn.Module | dict | list | torch.Generator | Tensor)  # by a module of torch
    module = vars(kind).get("__module__")  # of an extension type, it may be a descriptor
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES and not held


def _model_slots(kind: type) -> list[MemberDescriptorType]:
    """The attributes of an object of a class that its `__dict__` does not hold."""
    return [
        descriptor
        for part in kind.__mro__
        if _is_model_class(part)
        for descriptor in vars(part).values()
        if isinstance(descriptor, MemberDescriptorType)
    ]


def _is_model_class(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and is_model_code(file)


@functools.cache
def _names(code: CodeType) -> frozenset[str]:
    """The names of global variables that a function and the functions within it may use."""
    inner = [_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(code.co_names).union(*inner)
