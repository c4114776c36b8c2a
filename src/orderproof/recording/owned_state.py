"""The state that a model owns: its objects, the classes and functions of its code, and the global variables they name.

A counter may be an attribute, an item of a nested dictionary, a class attribute, a default argument, a variable of a
closure or a global variable. The walk follows references from the module through objects of Python and through the code
that the model owns: that of the packages in which its modules are defined, and all code that was not installed. It
keeps the contents of each mutable object, one level deep, to see what a call changes.

Not compared: objects in C that do not show their contents, libraries that the model only uses, and what only a weak
reference reaches.
"""

from __future__ import annotations

import array
import collections
import functools
import gc
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

from orderproof.recording.contents import (
    MISSING,
    EmptyDictionaries,
    State,
    Variables,
    cell_contents,
    class_items,
    generator_state,
    is_plain,
    items,
    memory_of_buffer,
    position,
    refill,
    restore_array,
    restore_buffer,
    restore_class,
    restore_items,
    restore_slots,
    slots_of,
)
from orderproof.recording.elements import Range
from orderproof.recording.memory import memory_of_array, overlaps_any, storage_of
from orderproof.recording.source import is_installed, is_model_code

MAX_OBJECTS = 20_000
_TENSORS_OF_A_MODULE = ("_parameters", "_buffers")  # the recording replaces and restores them itself
_OF_EVERY_MODULE = frozenset(vars(nn.Module())) - {"_modules", "training", *_TENSORS_OF_A_MODULE}  # its hooks
_LIBRARIES = ("torch", "numpy", "orderproof", "builtins", *sys.stdlib_module_names)
_BUFFERS = (bytearray, array.array, memoryview)


@dataclass(slots=True)
class OwnedState:
    """The state that a module owns.

    Attributes:
        states: The contents of each mutable object.
        complete: False if there are more than `MAX_OBJECTS`.
        arrays: The name and the memory of each object besides tensors that reads memory, such as an array of numpy.
        trained: Parameters, also those that no module holds.
        tensors: Other tensors.
        numbers: The integers in the code that the model owns, with which it may compare a size.
        packages: The packages that the model owns.

    """

    states: list[State | Variables | EmptyDictionaries] = field(default_factory=list)
    complete: bool = True
    arrays: list[tuple[str, Range]] = field(default_factory=list)
    trained: list[Tensor] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    packages: frozenset[str] = frozenset()

    def put_back(self) -> list[str]:
        """Let each object hold again what it held; the names of what differed."""
        return [name for state in self.states for name in state.changes()]

    @property
    def arrays_of_parameters(self) -> list[str]:
        """The names of objects besides tensors that read the memory of a parameter."""
        trained = [memory for x in self.trained if (memory := storage_of(x)) is not None]
        return [path for path, memory in self.arrays if overlaps_any(memory, trained)]


def owned_state(module: nn.Module) -> OwnedState:
    """The state that a module owns. In a block of `shared_walks`, a module within it is walked once."""
    walk = _shared[0] if _shared else None
    if walk is None or not walk.holds_part_of(module):
        walk = _Walk(_owned_packages(module))
    found = walk.run([("", module), *module.named_parameters(), *module.named_buffers()])
    if _shared:
        _shared[0] = walk
    return found


def state_within(roots: Iterable[tuple[str, Any]], packages: frozenset[str]) -> OwnedState:
    """The state of the objects within reach of these, each with its name, in a model that owns these packages."""
    return _Walk(packages).run(roots)


_shared: list[_Walk | None] = []  # the last walk, in a block of `shared_walks`


@contextmanager
def shared_walks() -> Iterator[None]:
    """In this block, a walk continues the last one, if that was of a part of its module and nothing changed since."""
    if _shared:  # the outer block ends later
        yield
        return
    _shared.append(None)
    try:
        yield
    finally:
        _shared.clear()


def _owned_packages(module: nn.Module) -> frozenset[str]:
    """The packages in which the classes of a module's parts are defined, without libraries."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    return frozenset(kind.__module__.partition(".")[0] for kind in kinds) - {*_LIBRARIES}


class _Walk:
    def __init__(self, packages: frozenset[str]) -> None:
        self.found = OwnedState(packages=packages)
        self.seen: dict[object, Any] = {}  # keeps each object alive, so that no id is used twice
        self.queue: collections.deque[tuple[str, Any]] = collections.deque()
        self.names = {"forward"}  # that the code met so far uses
        self.unnamed: dict[str, list[tuple[str, Any]]] = {}  # what classes define under other names
        self.modules: list[ModuleType] = []  # of Python, that the model owns
        self.variables: dict[int, Variables] = {}  # by id of the variables of a module
        self.empty = EmptyDictionaries()
        self.found.states.append(self.empty)

    def holds_part_of(self, module: nn.Module) -> bool:
        """True if this walk met a part of a module, and finds today what it found."""
        met = any(self.seen.get(id(part)) is part for part in module.modules())
        return met and self.found.complete and not any(state.differs() for state in self.found.states)

    def run(self, roots: Iterable[tuple[str, Any]]) -> OwnedState:
        """Visit these objects, and what they lead to."""
        self.queue.extend(roots)
        while self.queue and len(self.seen) < MAX_OBJECTS:
            path, value = self.queue.popleft()
            # An import stays: a module of Python that is taken away would be loaded twice.
            if not is_plain(value) and id(value) not in self.seen and value is not sys.modules:
                self.seen[id(value)] = value
                self._visit(path, value)
        for variables in self.variables.values():
            variables.keep()
        self.found.complete = not self.queue
        return self.found

    def _visit(self, path: str, value: Any) -> None:
        if isinstance(value, Tensor):
            trained = isinstance(value, nn.Parameter) or value.requires_grad
            (self.found.trained if trained else self.found.tensors).append(value)
            self._mapping(path, vars(value))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, FunctionType):
            self._function(path, value)
        elif isinstance(value, ModuleType):
            self._module(value)
        elif isinstance(value, MethodType):
            self._follow(path, (value.__self__, value.__func__))
        elif isinstance(value, BuiltinMethodType):  # of an object, such as `deque.popleft`, or a function of a module
            self._follow(path, () if isinstance(value.__self__, ModuleType) else (value.__self__,))
        elif isinstance(value, functools.partial):
            self._follow(path, (value.func, *value.args, *value.keywords.values()))
        elif isinstance(value, functools._lru_cache_wrapper):
            self._cached_function(path, value)
        elif isinstance(value, logging.Logger):  # its handlers and caches are those of what uses the model
            self._mapping(path, vars(value), ("_cache", "manager", "parent", "handlers"))
        elif (generator := generator_state(value)) is not None:
            self._add(path, *generator)
        else:
            self._container(path, value)
            self._attributes(path, value)

    # ------------------------------------------------------------------ objects

    def _add(self, path: str, read: Callable[[], Any], restore: Callable[[Any], object] | None = None) -> Any:
        """Keep the contents of an object; them."""
        before = read()
        self.found.states.append(State(path, read, restore, before))
        return before

    def _follow(self, path: str, values: Iterable[Any]) -> None:
        self.queue.extend((path, value) for value in values)

    def _container(self, path: str, value: Any) -> None:
        if isinstance(value, dict):
            self._mapping(path, value)
        elif isinstance(value, list | collections.deque | set):
            self._follow(path, self._add(path, lambda: tuple(value), lambda old: refill(value, old)))
        elif isinstance(value, tuple | frozenset):
            self._follow(path, value)
        elif isinstance(value, MappingProxyType):
            self._follow(path, self._add(path, lambda: items(dict(value)))[1])
        elif isinstance(value, ContextVar):
            self._follow(path, self._add(path, lambda: (value.get(None),)))
        elif isinstance(value, CellType):
            restore = functools.partial(setattr, value, "cell_contents")
            self._follow(path, self._add(path, lambda: cell_contents(value), lambda old: restore(*old)))
        elif isinstance(value, _BUFFERS):
            self.found.arrays += [(path, memory) for memory in memory_of_buffer(value)]
            self._add(path, lambda: memoryview(value).tobytes(), functools.partial(restore_buffer, value))
        elif isinstance(value, Iterator):
            self._add(path, lambda: position(value))
        elif (numpy := sys.modules.get("numpy")) is not None and isinstance(value, numpy.ndarray):
            self.found.arrays.append((path, memory_of_array(value)))
            self._add(path, value.tobytes, lambda old: restore_array(value, old))
            if value.dtype.hasobject:
                self._follow(path, value.ravel().tolist())

    def _mapping(self, path: str, value: dict[Any, Any], hidden: Collection[str] = ()) -> None:
        if not value and type(value) is dict:
            self.empty.found.append((path, value))
            return
        read = functools.partial(items, value, hidden)
        keys, values = self._add(path, read, lambda old: restore_items(value, old, hidden))
        for key, x in zip(keys, values, strict=True):
            self._follow(path if key == "_modules" else f"{path}.{key}".removeprefix("."), (x,))

    def _attributes(self, path: str, value: Any) -> None:
        kind = type(value)
        names = getattr(value, "__dict__", None)
        if isinstance(value, nn.Module):
            for name in _OF_EVERY_MODULE:
                if names[name]:  # type: ignore[index]
                    self.queue.append((f"{path}.{name}", names[name]))  # type: ignore[index]
            self._add(path, lambda: tuple(len(x) for n in _OF_EVERY_MODULE if (x := value.__dict__[n])))
            self._mapping(path, names, (*_TENSORS_OF_A_MODULE, *_OF_EVERY_MODULE))  # type: ignore[arg-type]
        elif isinstance(names, dict) and (self._owns(kind) or isinstance(value, dict | list | set | tuple)):
            self._mapping(path, names)
        elif isinstance(names, dict):  # an object of a library: what it holds is that library's
            self._add(path, functools.partial(items, names), lambda old: restore_items(names, old))
            self._follow(path, (x for x in names.values() if isinstance(x, Tensor | nn.Module | dict | list)))
        if slots := [name for part in kind.__mro__ if self._owns(part) for name in slots_of(part)]:
            read = lambda: tuple(getattr(value, name, MISSING) for name in slots)  # noqa: E731 - as those above
            self._follow(path, self._add(path, read, functools.partial(restore_slots, value, slots)))
        self.queue.append((kind.__name__, kind))

    def _cached_function(self, path: str, function: functools._lru_cache_wrapper[Any]) -> None:
        """The number of results that it has computed, and what they hold; after a change all are computed again."""
        misses = [function.cache_info().misses]

        def restore(_: int) -> None:
            function.cache_clear()
            misses[0] = 0

        self._add(path, lambda: function.cache_info().misses - misses[0], restore)
        held = [x for x in gc.get_referents(function) if type(x) is not dict]
        caches = [x for x in gc.get_referents(function) if type(x) is dict]
        self._follow(path, (function.__wrapped__, *held, *(x for cache in caches for x in cache.values())))

    # ------------------------------------------------------------------ code

    def _owns(self, kind: type) -> bool:
        """True if the model owns the code of a class."""
        return self._owns_module(kind.__module__)

    def _owns_module(self, name: object) -> bool:
        if not isinstance(name, str):  # of a class in C it may be a descriptor
            return False
        package = name.partition(".")[0]
        if package in self.found.packages:
            return True
        file = getattr(sys.modules.get(name), "__file__", None)
        return package not in _LIBRARIES and not (isinstance(file, str) and is_installed(file))

    def _owns_code(self, function: FunctionType) -> bool:
        file = function.__code__.co_filename
        return is_model_code(file) and (not is_installed(file) or self._owns_module(function.__module__))

    def _class(self, kind: type) -> None:
        for part in kind.__mro__:
            if not self._owns(part) or (part is not kind and id(part) in self.seen):
                continue
            self.seen[id(part)] = part
            read, restore = functools.partial(class_items, part), functools.partial(restore_class, part)
            for name, value in zip(*self._add(part.__name__, read, restore), strict=True):
                inner = (value.fget, value.fset) if isinstance(value, property) else getattr(value, "__func__", value)
                # Expressions call special methods, as `x[0]` does: no name shows it.
                named = name in self.names or name.startswith("__")
                waiting = self.queue if named else self.unnamed.setdefault(name, [])
                waiting.append((f"{part.__name__}.{name}", inner))

    def _module(self, module: ModuleType) -> None:
        """The variables of a module of Python that the model owns, as far as its code names them."""
        if self._owns_module(module.__name__):
            self.modules.append(module)
            for name in self.names.intersection(vars(module)):
                self._variable(f"{module.__name__}.{name}", vars(module), name)

    def _function(self, path: str, function: FunctionType) -> None:
        if not self._owns_code(function):
            # A decorator of a library, as `torch.no_grad`, holds the function of the model.
            cells = (x for cell in function.__closure__ or () for x in cell_contents(cell))
            held = (getattr(function, "__wrapped__", None), *cells)
            self._follow(path, [x for x in held if isinstance(x, FunctionType)])
            return
        self._follow(path, (*(function.__defaults__ or ()), *(function.__closure__ or ())))
        if function.__kwdefaults__:
            self._mapping(path, function.__kwdefaults__)
        self._mapping(path, vars(function))
        names, numbers = _names_and_numbers(function.__code__)
        self.found.numbers |= numbers
        for name in names:
            if name in function.__globals__:
                self._variable(f"global {name}", function.__globals__, name)
            elif isinstance(sys.modules.get(name), ModuleType):  # imported by the function itself
                self.queue.append((name, sys.modules[name]))
        for name in names - self.names:
            self.queue.extend(self.unnamed.pop(name, ()))
            for module in self.modules:
                if name in vars(module):
                    self._variable(f"{module.__name__}.{name}", vars(module), name)
        self.names |= names

    def _variable(self, path: str, variables: dict[str, Any], name: str) -> None:
        """A global variable: which object it is, and its contents."""
        if name.startswith("__"):
            return
        kept = self.variables.get(id(variables))
        if kept is None:
            kept = self.variables[id(variables)] = Variables(variables)
            self.found.states.append(kept)
        if name not in kept.paths:
            kept.paths[name] = path
            self._follow(path, (variables[name],))


@functools.cache
def _names_and_numbers(code: CodeType) -> tuple[frozenset[str], frozenset[int]]:
    """The names that a function and the functions within it may look up, and the integers in their code."""
    names, numbers = set(code.co_names), {x for x in code.co_consts if type(x) is int}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _names_and_numbers(inner)
            names |= more[0]
            numbers |= more[1]
    return frozenset(names), frozenset(numbers)
