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
import gc
import hashlib
import logging
import pickle
import random
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from itertools import chain
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orderproof.library_messages import suppress_warnings
from orderproof.recording.compared_state import SCALARS, State
from orderproof.recording.elements import Range
from orderproof.recording.memory import EVERYWHERE, memory_of_array, overlaps_any, storage_of
from orderproof.recording.model_code import (
    belongs_to,
    global_names,
    is_model_class,
    is_model_module,
    is_of_the_user,
)
from orderproof.recording.object_contents import (
    ITERATORS,
    attribute_descriptors,
    cached_results,
    cell_contents,
    generator_position,
    holds_recorded,
    is_slot,
    iterator_state,
    keys_and_values,
    mapping_items,
    namespace,
    refill,
    refill_set,
    restore_array,
    restore_mapping,
    restore_memory,
    restore_namespace,
    restore_slots,
    restore_variables,
    slot_value,
    variables_of,
)
from orderproof.recording.real_attributes import (
    attributes_of,
    bases_of,
    class_attributes,
    is_a,
    items_of,
    variables_in,
)
from orderproof.recording.source import is_model_code

MAX_OBJECTS = 20_000
_TENSORS_OF_A_MODULE = ("_parameters", "_buffers")  # the recording replaces and restores them itself
_CACHED_FOR_GOOD = ("torch", "transformers", *sys.stdlib_module_names)  # their results are facts about the installation
_CACHES_OF_PYTHON = {  # by what they are computed from, unless the model names them
    ("re", "_cache"), ("re", "_cache2"), ("sys", "path_importer_cache"), ("ctypes", "_c_functype_cache"),
    ("ctypes", "_pointer_type_cache"),
}  # fmt: skip
_LEAVES = frozenset(map(id, (*SCALARS, type(None), torch.dtype, torch.device, torch.Size)))  # not by equality
_TABLES = (list, dict, set, deque)
_CODE = (type, FunctionType, BuiltinFunctionType)
_CHANGED_BY_RECORDINGS = ("orderproof", "sympy", "mpmath")  # sympy registers the numbers of torch's open sizes
_CALLERS = ("_pytest", "pytest", "pluggy", "xdist", "execnet", "IPython", "ipykernel")  # run the code of a model
_NOT_COMPARED = (*_CHANGED_BY_RECORDINGS, *_CALLERS)
_LIBRARIES = (*_NOT_COMPARED, "logging", "importlib")  # hold no state of the model
_OF_A_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__", "__name__", "__qualname__", "__doc__", "__module__")
_OF_A_CLASS = ("__name__", "__qualname__", "__bases__")
_MUTABLE_CLASS = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python made
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: also made as the program runs, but in C
_SHOWN_IN_C = (  # classes in C whose objects are compared, or have no state that changes
    *SCALARS, type(None), *_TABLES, *_CODE, tuple, frozenset, slice, range, bytearray, array.array, memoryview, Tensor,
    torch.UntypedStorage, torch.Generator, torch.dtype, torch.device, torch.Size, MethodType, ModuleType, CellType,
    MappingProxyType, GeneratorType, CoroutineType, AsyncGeneratorType, ContextVar, Token, re.Pattern, random.Random,
    functools._lru_cache_wrapper, functools.partial,
)  # fmt: skip
_LOCAL = threading.local.__getattribute__
_NEXT = object()  # between the attributes of several objects
_FUNCTION_OF_C = ctypes._CFuncPtr  # type: ignore[attr-defined]


@dataclass(slots=True)
class ReachableState:
    """The state within reach of a module, and what the walk could not follow."""

    states: list[State]
    complete: bool  # False: the walk ended at `MAX_OBJECTS`
    shared_memory: list[str]  # objects besides tensors that read the memory of a parameter
    functions_of_c: list[str]  # whose answers no profile function sees
    arrays: list[tuple[str, Range]]  # the memory of objects besides tensors
    trained: list[Tensor]  # parameters, also those that no module holds
    tensors: list[Tensor]  # that are no parameters


@contextmanager
def shared_walks() -> Iterator[None]:
    """In this block, a module that holds one whose state was walked, and is unchanged, continues that walk."""
    if _shared:  # the outer block ends later
        yield
        return
    _shared.append(None)
    try:
        yield
    finally:
        _shared.clear()


def reachable_state(module: nn.Module) -> ReachableState:
    """The state of every mutable object within reach of a module."""
    parameters: list[Tensor] = [x for x in module.parameters() if not x.is_meta]
    walk = _shared[0] if _shared else None
    if walk is None or not walk.continues_with(module, parameters):
        walk = _Walk(parameters)
    walk.queue.append(("", module))
    walk.queue.extend((name, x) for name, x in (*module.named_parameters(), *module.named_buffers()))
    found = walk.run()
    if _shared:
        _shared[0] = walk
    return found


def state_within(roots: Iterable[tuple[str, Any]]) -> ReachableState:
    """The state of every mutable object within reach of these, each with its name."""
    walk = _Walk([])
    walk.queue.extend(roots)
    return walk.run()


def shows_its_state(value: Any) -> bool:
    """False of an object of a class in C whose contents are not compared, such as a file."""
    kind = type(value)
    if is_a(value, _SHOWN_IN_C) or belongs_to(kind, ("numpy",)):
        return True
    if is_a(value, Iterator) and kind.__module__ in ITERATORS:
        return True
    return any(part.__flags__ & (_MUTABLE_CLASS | _IMMUTABLE_TYPE) == _MUTABLE_CLASS for part in bases_of(kind))


_shared: list[_Walk | None] = []  # the last walk, in a block of `shared_walks`


class _Shown(NamedTuple):
    """A part of a library, or of what uses the model: it is compared, and neither restored nor followed."""

    part: Any


class _OfAnIterator(NamedTuple):
    """A part of an iterator or a generator: it is not restored, because its owner's position is not."""

    part: Any


class _Walk:
    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        self.states: list[State] = []
        self.arrays: list[tuple[str, Range]] = []
        self.trained: list[Tensor] = []
        self.tensors: list[Tensor] = []
        self.functions_of_c: list[str] = []
        self.shown: dict[int, Any] = {}
        self.seen: dict[int, Any] = {}  # keeps each object alive, so that no id is used twice
        self.queue: deque[tuple[str, Any]] = deque()
        self.restores = True  # what is visited now
        self.names: set[str] = {"forward"}  # those that the code met so far uses
        self.unnamed: dict[str, list[tuple[str, Any]]] = {}  # what classes define under other names
        # Of the classes met so far, by identity: a class may define its own equality.
        self.slots: dict[int, list[MemberDescriptorType | GetSetDescriptorType]] = {}
        self.classes: dict[int, type] = {}

    def continues_with(self, module: nn.Module, parameters: list[Tensor]) -> bool:
        """True if the walk of a module finds what this one found, and what the module holds besides."""
        return (
            not self.queue
            and any(self.seen.get(id(part)) is part for part in module.modules())
            and [id(x) for x in parameters] == [id(x) for x in self.parameters]
            and not any(state.differs() for state in self.states)
        )

    def run(self) -> ReachableState:
        """Visit what is queued, and what that leads to."""
        while self.queue and len(self.seen) < MAX_OBJECTS:
            self.visit(*self.queue.popleft())
        with torch._C.DisableTorchFunction():  # a recording, whose loops look for state, refuses memory to the model
            trained = [memory for x in (*self.parameters, *self.trained) if (memory := storage_of(x)) is not None]
        shared = [path for path, memory in self.arrays if overlaps_any(memory, trained)]
        return ReachableState(
            list(self.states), not self.queue, shared, list(self.functions_of_c), list(self.arrays), list(self.trained),
            list(self.tensors),
        )  # fmt: skip

    def add(
        self, path: str, read: Callable[[], Any], restore: Callable[[Any], None] | None = None,
        held: Callable[[], tuple[Any, ...]] | None = None,
    ) -> None:  # fmt: skip
        held_now = () if held is None else held()
        self.states.append(State(path, read, restore if self.restores else None, read(), held, held_now))

    def follow(self, path: str, values: Iterable[Any]) -> None:
        self.queue.extend((path, value if self.restores else _OfAnIterator(value)) for value in values)

    def follow_unrestored(self, path: str, values: Iterable[Any]) -> None:
        self.queue.extend((path, _OfAnIterator(value)) for value in values)

    def visit(self, path: str, value: Any) -> None:
        if is_a(value, _Shown):
            self._part_of_a_library(path, value.part)
        elif is_a(value, _OfAnIterator):
            self.restores = False
            self.visit(path, value.part)
            self.restores = True
        elif not (id(type(value)) in _LEAVES or id(value) in self.seen or _belongs_to_a_library(type(value))):
            self._visit_object(path, value)

    def _visit_object(self, path: str, value: Any) -> None:
        if value is sys.modules:  # an import stays: a module that is taken away would be loaded twice
            return
        self.seen[id(value)] = value
        if is_a(value, Tensor):
            if isinstance(value, nn.Parameter) or value.requires_grad:
                self.trained.append(value)
            else:
                self.tensors.append(value)
            self._own_attributes(path, value)
        elif is_a(value, ModuleType):
            self._module(path, value)
        elif is_a(value, type):
            self._class(path, value)
        elif is_a(value, FunctionType):
            self._function(path, value)
        elif is_a(value, MethodType | BuiltinFunctionType | MethodWrapperType):
            self._method(path, value)
        elif type(value) is tuple or type(value) is frozenset:
            self.follow(path, value)
        elif not self._library_object(path, value):
            self._container(path, value)
            self._attributes(path, value)

    # ------------------------------------------------------------------ containers and objects

    def _container(self, path: str, value: Any) -> None:
        if is_a(value, dict):
            self._mapping(path, value)
        elif is_a(value, list | deque):
            self.add(path, lambda: items_of(value), lambda old: refill(value, old))
            self.follow(path, items_of(value))
        elif is_a(value, set):
            self.add(path, lambda: items_of(value), lambda old: refill_set(value, old))
            self.follow(path, items_of(value))
        elif is_a(value, tuple | frozenset):
            self.follow(path, items_of(value))
        elif is_a(value, _FUNCTION_OF_C):
            self.functions_of_c.append(path)
        elif is_a(value, bytearray | array.array | memoryview) or type(type(value)).__module__ == "_ctypes":
            self._buffer(path, value)

    def _buffer(self, path: str, value: Any) -> None:
        if is_a(value, ctypes._Pointer):
            self.arrays.append((path, EVERYWHERE))
        try:
            memory = memoryview(value).cast("B")
        except (TypeError, ValueError):  # memory with gaps
            self.arrays.append((path, EVERYWHERE))
            return
        if memory.nbytes:
            with suppress_warnings():  # that the buffer is not writable: only its address is read
                start = torch.frombuffer(memory, dtype=torch.uint8).data_ptr()
            self.arrays.append((path, (start, start + memory.nbytes)))
        self.add(path, memory.tobytes, functools.partial(restore_memory, memory))

    def _mapping(self, path: str, value: dict[Any, Any], *, hidden: tuple[str, ...] = (), owner: Any = None) -> None:
        """The items of a mapping; with an ``owner``, they are its attributes, and its class belongs to them."""
        read = functools.partial(mapping_items, value, hidden, owner)
        self.add(path, read, lambda old: restore_mapping(value, old, hidden, owner))
        for key, x in self.states[-1].before.items():
            self.follow(path if key == "_modules" else f"{path}.{key}".removeprefix("."), (x,))

    def _own_attributes(self, path: str, value: Any) -> None:
        names = attributes_of(value)
        if names is not None:
            self._mapping(path, names)

    def _attributes(self, path: str, value: Any) -> None:
        names = attributes_of(value) if not is_a(value, threading.local) else _LOCAL(value, "__dict__")
        if names is not None:
            hidden = _TENSORS_OF_A_MODULE if is_a(value, nn.Module) else ()
            self._mapping(path, names, hidden=hidden, owner=value)
            if is_a(value, nn.Module):
                self.trained += [x for x in value._parameters.values() if x is not None]
        kind = type(value)
        if id(kind) not in self.slots:
            self.classes[id(kind)] = kind
            self.slots[id(kind)] = attribute_descriptors(kind)
        if slots := self.slots[id(kind)]:
            self.add(
                path,
                lambda: {s.__name__: slot_value(s, value) for s in slots},
                lambda old: restore_slots(value, slots, old),
            )
            self.follow(path, [slot_value(s, value) for s in slots if is_slot(s)])
        self.queue.append((kind.__name__, kind))

    def _library_object(self, path: str, value: Any) -> bool:
        """Add the state of an object whose attributes do not show it."""
        if self._random_generator(path, value):
            return True
        numpy = sys.modules.get("numpy")
        if numpy is not None and is_a(value, numpy.void):  # a view of an array
            self.arrays.append((path, EVERYWHERE))
        if is_a(value, torch.UntypedStorage):
            if value.device.type == "cpu" and value.nbytes():
                self.arrays.append((path, (value.data_ptr(), value.data_ptr() + value.nbytes())))
            self.add(path, value.nbytes, value.resize_)
            self._mapping(path, vars(value))
        elif is_a(value, logging.Logger):
            self._logger(path, value)
        elif numpy is not None and is_a(value, numpy.ndarray):
            self._array(path, value)
        elif is_a(value, functools._lru_cache_wrapper):
            self._cached_function(path, value)
        elif is_a(value, weakref.ReferenceType):
            self.follow(path, (weakref.ref.__call__(value),))
            self._attributes(path, value)
        elif is_a(value, ContextVar):
            self.add(path, lambda: (value.get(None),))
            self.follow(path, (value.get(None),))
        elif is_a(value, CellType):
            self.add(path, lambda: (cell_contents(value),), lambda old: setattr(value, "cell_contents", old[0]))
            self.follow(path, (cell_contents(value),))
        else:
            return self._iterator_or_view(path, value)
        return True

    def _cached_function(self, path: str, function: functools._lru_cache_wrapper[Any]) -> None:
        """The number of results that it has computed; they cannot be taken away one by one."""
        computed = [function.cache_info().misses]

        def restore(_: int) -> None:
            # A recording leaves meta tensors in it, which no later call could use.
            if holds_recorded(gc.get_referents(function)):
                function.cache_clear()
            computed[0] = function.cache_info().misses

        kept = str(getattr(function, "__module__", "")).partition(".")[0] in _CACHED_FOR_GOOD
        self.add(path, lambda: function.cache_info().misses - computed[0], None if kept else restore)
        self.follow(path, (function.__wrapped__, *(() if kept else cached_results(function))))

    def _logger(self, path: str, logger: logging.Logger) -> None:
        """Its level and attributes; its handlers belong to what uses the model."""
        self._mapping(path, vars(logger), hidden=("_cache", "manager", "parent", "handlers"))
        self.add(f"{path}.handlers", lambda: tuple(map(id, logger.handlers)))
        self.follow(f"{path}.handlers", map(_Shown, logger.handlers))

    def _iterator_or_view(self, path: str, value: Any) -> bool:
        if is_a(value, GeneratorType | CoroutineType | AsyncGeneratorType):
            self.add(path, lambda: generator_position(value))
            self.follow_unrestored(path, generator_position(value))
        elif is_a(value, MappingProxyType):
            self.add(path, lambda: dict(value))
            self.follow(path, dict(value).values())
        elif is_a(value, Iterator) and type(value).__module__ in ITERATORS:
            self.add(path, lambda: iterator_state(value))
            self.follow_unrestored(path, gc.get_referents(value))
        else:
            return False
        return True

    def _array(self, path: str, value: Any) -> None:
        """An array of numpy. Its own methods may be code of the model, and those of a masked array write."""
        array = sys.modules["numpy"].ndarray
        self.arrays.append((path, memory_of_array(value)))
        self.add(path, functools.partial(array.tobytes, value), functools.partial(restore_array, value))
        if value.dtype.hasobject:
            self.add(path, lambda: tuple(array.tolist(array.ravel(value))), _refilled(value))
            self.follow(path, array.tolist(array.ravel(value)))
        if type(value) is not array:
            self._own_attributes(path, value)

    def _random_generator(self, path: str, value: Any) -> bool:
        numpy = sys.modules.get("numpy")
        if is_a(value, random.SystemRandom):
            pass  # each draw calls a function of the operating system, which is observed
        elif is_a(value, random.Random):
            generator = random.Random  # the methods of a subclass are code of the model
            self.add(path, lambda: generator.getstate(value), lambda old: generator.setstate(value, old))
        elif is_a(value, torch.Generator):
            self._generator(path, value.get_state, value.set_state)
        elif numpy is not None and is_a(value, numpy.random.Generator):
            bits = value.bit_generator
            self._generator(path, lambda: bits.state, lambda old: setattr(bits, "state", old))
        elif numpy is not None and is_a(value, numpy.random.RandomState):
            self._generator(path, lambda: value.get_state(legacy=False), value.set_state)
        else:
            return False
        return True

    def _generator(self, path: str, read: Callable[[], Any], restore: Callable[[Any], Any]) -> None:
        before = read()
        self.add(path, lambda: hashlib.sha1(pickle.dumps(read())).digest(), lambda _: restore(before))

    # ------------------------------------------------------------------ code

    def _module(self, path: str, module: ModuleType) -> None:
        """The variables of a Python module: by value in a library, followed in the code of a model."""
        if module.__name__.partition(".")[0] in _NOT_COMPARED:
            return
        variables = variables_in(module)
        restore = functools.partial(restore_variables, variables)
        self.add(module.__name__, lambda: variables_of(variables), restore, lambda: keys_and_values(variables))
        if not is_model_module(module, module.__name__):
            self._parts_of_a_library(module)
            return
        for name, value in list(variables.items()):
            waiting = self.queue if name in self.names else self.unnamed.setdefault(name, [])
            waiting.append((f"{path}.{name}", value))

    def _parts_of_a_library(self, module: ModuleType) -> None:
        """The attributes of functions and classes of a module, tables of Python, and what the model names."""
        variables = list(variables_in(module).items())
        kept = [x for _, x in variables if issubclass(type(x), FunctionType | type)]
        methods = (class_attributes(x).values() for x in kept if issubclass(type(x), type))
        kept += [x for x in chain.from_iterable(methods) if issubclass(type(x), FunctionType)]
        self.add(
            f"attributes in {module.__name__}",
            lambda: tuple(tuple(namespace(x).values()) for x in kept),
            held=lambda: tuple(chain.from_iterable((_NEXT, *x.values()) for x in map(vars, kept))),
        )
        of_python = module.__name__ in sys.stdlib_module_names
        for name, value in variables:
            kind = type(value)  # `isinstance` would ask the value
            if issubclass(kind, _CODE) or id(kind) in _LEAVES:
                continue
            table = of_python and kind in _TABLES and (module.__name__, name) not in _CACHES_OF_PYTHON
            called = name in self.names or table
            waiting = self.queue if called else self.unnamed.setdefault(name, [])
            waiting.append((f"{module.__name__}.{name}", _Shown(value)))

    def _part_of_a_library(self, path: str, part: Any) -> None:
        if id(part) in self.shown or part is sys.modules or belongs_to(type(part), _NOT_COMPARED):
            return
        self.shown[id(part)] = part
        if issubclass(type(part), ModuleType):
            if id(part) not in self.seen and part.__name__.partition(".")[0] not in _NOT_COMPARED:
                variables = variables_in(part)
                self.add(part.__name__, lambda: variables_of(variables), held=lambda: keys_and_values(variables))
                self._parts_of_a_library(part)
        elif type(part) is dict:
            self.add(path, lambda: mapping_items(part))
        elif type(part) in _TABLES:
            self.add(path, lambda: tuple(map(id, part)), held=lambda: tuple(part))
        else:
            names = attributes_of(part)
            if names is not None:
                self.add(path, lambda: mapping_items(names))
            if is_model_class(type(part)) and is_of_the_user(type(part)):
                self.add(type(part).__name__, lambda: namespace(type(part)))

    def _class(self, path: str, kind: type) -> None:
        if type(kind) is not type:
            self.queue.append((type(kind).__name__, type(kind)))
        for part in bases_of(kind):
            if part is not kind and id(part) in self.seen:
                continue
            if not is_model_class(part):
                if part.__flags__ & _MUTABLE_CLASS:
                    self.seen[id(part)] = part
                    self.add(part.__name__, lambda part=part: dict(class_attributes(part)))  # type: ignore[misc]
                continue
            self.seen[id(part)] = part
            self.add(
                part.__name__,
                functools.partial(namespace, part),
                functools.partial(restore_namespace, part),
                functools.partial(keys_and_values, class_attributes(part)),
            )
            self._named(part.__name__, part, _OF_A_CLASS)
            for name, value in namespace(part).items():
                inner = getattr(value, "__func__", None) or value
                if issubclass(type(value), property):
                    inner = (value.fget, value.fset, value.fdel)
                special = name.startswith("__")  # called by expressions, as `x[0]` does, and not by name
                if special and not is_of_the_user(part):  # those of libraries lead to most of their code
                    continue
                waiting = self.queue if special or name in self.names else self.unnamed.setdefault(name, [])
                waiting.append((f"{part.__name__}.{name}", inner))

    def _method(self, path: str, method: MethodType | BuiltinFunctionType | MethodWrapperType) -> None:
        """The object of a bound method, such as `deque.popleft`; a function in C of a module has none."""
        if isinstance(method, MethodType):
            self.follow(path, (method.__self__, method.__func__))
        elif not is_a(method.__self__, ModuleType | type):
            self.follow(path, (method.__self__,))

    def _function(self, path: str, function: FunctionType) -> None:
        if not is_model_code(function.__code__.co_filename):
            # A decorator of a library, as `torch.no_grad`, holds the function of the model.
            held = [getattr(function, "__wrapped__", None), *map(cell_contents, function.__closure__ or ())]
            self.follow(path, [x for x in held if is_a(x, FunctionType)])
            return
        self.follow(path, function.__defaults__ or ())
        if function.__kwdefaults__ is not None:
            self._mapping(path, function.__kwdefaults__)
        self.follow(path, function.__closure__ or ())
        self._mapping(path, function.__dict__)
        self._named(path, function, _OF_A_FUNCTION)
        variables = function.__globals__
        for name in global_names(function.__code__):
            self.names.add(name)
            self.queue.extend(self.unnamed.pop(name, ()))
            if name in variables:
                self._global(variables, name)
            elif issubclass(type(module := sys.modules.get(name)), ModuleType):  # imported by the function itself
                self.queue.append((name, module if is_model_module(module, name) else _Shown(module)))

    def _named(self, path: str, value: Any, names: tuple[str, ...]) -> None:
        """Attributes of a function or class that its namespace does not hold, and its annotations."""

        def restore(old: dict[str, Any]) -> None:
            for name, x in old.items():
                setattr(value, name, x)

        self.add(path, lambda: {name: getattr(value, name) for name in names}, restore)
        annotations: Any = getattr(value, "__annotations__", None)
        if is_a(annotations, dict):
            self.add(f"{path}.__annotations__", lambda: dict(annotations))

    def _global(self, variables: dict[str, Any], name: str) -> None:
        key = id(variables) ^ hash(name)
        if key in self.seen:
            return
        self.seen[key] = None
        path = f"global {name}"
        self.add(path, lambda: (variables.get(name),), lambda old: variables.__setitem__(name, old[0]))
        self.queue.append((path, variables[name]))


def _refilled(array: Any) -> Callable[[tuple[Any, ...]], None]:
    """A function that puts the objects back that an array of numpy had, as far as it can be written."""

    def restore(old: tuple[Any, ...]) -> None:
        plain = array.view(sys.modules["numpy"].ndarray)
        if plain.dtype == object and plain.flags.writeable:
            for place, one in zip(sys.modules["numpy"].ndindex(plain.shape), old, strict=True):
                plain[place] = one

    return restore


def _belongs_to_a_library(kind: type) -> bool:
    held = issubclass(kind, nn.Module | dict | list | torch.Generator | Tensor | torch.UntypedStorage | logging.Logger)
    return belongs_to(kind, _LIBRARIES) and not held
