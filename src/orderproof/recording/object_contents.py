"""Read and restore what modules, classes, slots, closures, generators and iterators hold."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import torch
from torch import Tensor

from orderproof.recording.compared_state import SCALARS
from orderproof.recording.model_code import is_model_class
from orderproof.recording.real_attributes import bases_of, class_attributes, is_a

ITERATORS = ("builtins", "itertools")  # modules whose iterators show where they are
NOT_STATE = ("__dict__", "__weakref__", "__annotations__")
_DEFINITIONS = (ModuleType, type, FunctionType, BuiltinFunctionType)  # importing one of them is no state
_DESCRIPTIONS = (  # never change
    BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MethodWrapperType, ClassMethodDescriptorType,
    GetSetDescriptorType, MemberDescriptorType, property, classmethod, staticmethod, CodeType, ModuleType, type,
)  # fmt: skip
_SHOWN_ONCE = "__warningregistry__"


def keys_and_values(mapping: Mapping[str, Any]) -> tuple[Any, ...]:
    """The names and objects of a namespace, which no class of a model makes."""
    return (*mapping, *mapping.values())


def variables_of(variables: dict[str, Any]) -> dict[str, Any]:
    """The variables of a module but for what it defines or imports, and the warnings that were shown once."""
    return {
        name: x for name, x in list(variables.items()) if not issubclass(type(x), _DEFINITIONS) and name != _SHOWN_ONCE
    }


def restore_variables(variables: dict[str, Any], old: dict[str, Any]) -> None:
    """Put the variables of a module back, and take away those that are new."""
    for name in variables_of(variables).keys() - old.keys():
        del variables[name]
    variables.update(old)


def mapping_items(mapping: dict[Any, Any], hidden: tuple[str, ...] = (), owner: Any = None) -> dict[Any, Any]:
    """The items of a mapping in their order, but for hidden keys; with those of an ``owner``, its class too."""
    if owner is None and not dict.__len__(mapping):
        return {}
    try:
        found = dict(OrderedDict.items(mapping) if isinstance(mapping, OrderedDict) else dict.items(mapping))
    except TypeError:  # a symbol that a recording left, which has no hash
        found = {id(key): x for key, x in dict.items(mapping)}
    for key in hidden:
        found.pop(key, None)
    if owner is not None:
        found["__class__"] = type(owner)
    return found


def restore_mapping(mapping: dict[Any, Any], old: dict[Any, Any], hidden: tuple[str, ...], owner: Any) -> None:
    """Put the items back that `mapping_items` found, in their order."""
    if owner is not None and type(owner) is not old["__class__"]:
        owner.__class__ = old["__class__"]
    if owner is not None:
        old = {key: x for key, x in old.items() if key != "__class__"}
    # The methods of a subclass may do other things: `Counter.update` adds.
    kind: Any = OrderedDict if isinstance(mapping, OrderedDict) else dict
    try:
        for key in [key for key in kind.keys(mapping) if key not in hidden and key not in old]:
            kind.__delitem__(mapping, key)
    except TypeError:  # a symbol
        kind.clear(mapping)
    for key, x in old.items():
        kind.__setitem__(mapping, key, x)
    if list(mapping_items(mapping, hidden)) != list(old):
        for key, x in old.items():
            kind.__delitem__(mapping, key)
            kind.__setitem__(mapping, key, x)


def refill(value: Any, old: tuple[Any, ...]) -> None:
    """Put the items back that a list or a deque had."""
    base: Any = deque if is_a(value, deque) else list
    base.clear(value)
    base.extend(value, old)


def refill_set(value: set[Any], old: tuple[Any, ...]) -> None:
    """Put the members back that a set had."""
    set.clear(value)
    set.update(value, old)


def restore_memory(memory: memoryview, old: bytes) -> None:
    """Put the bytes back that a buffer had, if it can be written."""
    if not memory.readonly:
        memory[:] = old


def restore_array(array: Any, old: bytes) -> None:
    """Put the numbers back that an array of numpy had, if it can be written."""
    import numpy as np

    plain = array.view(np.ndarray)  # the methods of a subclass are code of the model
    if plain.flags.writeable and not plain.dtype.hasobject:
        plain[...] = np.frombuffer(old, plain.dtype).reshape(plain.shape)


def namespace(kind: type | FunctionType) -> dict[str, Any]:
    """The attributes of a class or a function that may be state."""
    held = vars(kind) if is_a(kind, FunctionType) else class_attributes(kind)  # type: ignore[arg-type]
    return {name: value for name, value in held.items() if name not in NOT_STATE}


def restore_namespace(kind: type, old: dict[str, Any]) -> None:
    """Put the attributes of a class back, and take away those that are new."""
    for name in [name for name in namespace(kind) if name not in old]:
        delattr(kind, name)
    for name, value in old.items():
        if class_attributes(kind).get(name) is not value:
            setattr(kind, name, value)


def attribute_descriptors(kind: type) -> list[MemberDescriptorType | GetSetDescriptorType]:
    """The attributes of an object that its `__dict__` does not hold: slots, and those of classes of Python in C."""
    if issubclass(kind, _DESCRIPTIONS):
        return []
    return [
        descriptor
        for part in bases_of(kind)
        if part is not object and (is_model_class(part) or part.__module__ in sys.stdlib_module_names)
        for name, descriptor in class_attributes(part).items()
        if isinstance(descriptor, MemberDescriptorType | GetSetDescriptorType) and name not in NOT_STATE
    ]


def is_slot(descriptor: MemberDescriptorType | GetSetDescriptorType) -> bool:
    """True if an attribute holds an object; another one is computed when it is read."""
    return isinstance(descriptor, MemberDescriptorType)


def slot_value(descriptor: MemberDescriptorType | GetSetDescriptorType, value: Any) -> Any:
    """The value of an attribute that a `__dict__` does not hold; None if it cannot be read."""
    try:
        held = descriptor.__get__(value)
    except Exception:  # noqa: BLE001 - an attribute in C may be empty, or not be readable now
        return None
    # What is computed when it is read may be another object each time.
    return held if is_slot(descriptor) or isinstance(held, (*SCALARS, tuple)) else type(held)


def restore_slots(
    value: Any, descriptors: Iterable[MemberDescriptorType | GetSetDescriptorType], old: dict[str, Any]
) -> None:
    """Put the objects back that slots held; one that was empty, or whose class is in C, keeps what it has."""
    for descriptor in descriptors:
        held = old[descriptor.__name__]
        if is_slot(descriptor) and held is not None:
            with contextlib.suppress(AttributeError, TypeError):
                descriptor.__set__(value, held)


def cell_contents(cell: CellType) -> Any:
    """The value of a variable of a closure; None if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def cached_results(function: functools._lru_cache_wrapper[Any]) -> list[Any]:
    """The arguments and results that a cached function keeps."""
    held = [x for x in gc.get_referents(function) if x is not vars(function)]
    caches = [x for x in held if type(x) is dict]  # one of limited size shows its results in `held`
    return [x for x in held if type(x) is not dict] + [x for cache in caches for x in (*cache, *cache.values())]


def generator_position(generator: Any) -> tuple[Any, ...]:
    """Where a generator or a coroutine is, with its local variables, the iterators of its loops and what it awaits."""
    frame = next(getattr(generator, name) for name in ("gi_frame", "cr_frame", "ag_frame") if hasattr(generator, name))
    if frame is None:
        return ()
    inner = getattr(generator, "gi_yieldfrom", None)
    local = list(frame.f_locals.values())
    # The iterators of loops are on the stack of the frame only.
    loops = [x for x in gc.get_referents(generator) if x is not inner and not any(x is one for one in local)]
    position = (frame.f_lasti, *local, *(y for x in loops if isinstance(x, Iterator) for y in iterator_position(x)))
    if inner is None:
        return position
    return (*position, *(iterator_position(inner) if isinstance(inner, Iterator) else (object(),)))


def iterator_position(iterator: Iterator[Any]) -> tuple[Any, ...]:
    """Where an iterator is; different at each time if it does not show that."""
    if isinstance(iterator, GeneratorType):
        return generator_position(iterator)
    if type(iterator).__module__ in ITERATORS:
        return iterator_state(iterator)
    return (iterator,)  # an object whose attributes are compared


def _is_without_state(function: Any) -> bool:
    """True of a class, a function of Python without a closure, and a function of a module in C."""
    if isinstance(function, BuiltinFunctionType):
        return isinstance(function.__self__, ModuleType)
    return isinstance(function, type) or (isinstance(function, FunctionType) and not function.__closure__)


def iterator_state(iterator: Iterator[Any]) -> tuple[Any, ...]:
    """Where an iterator in C is, with the iterators in it; different at each time if it does not show that."""
    try:
        function, *rest = tuple(iterator.__reduce__())
    except TypeError:  # as of a memory view
        return (object(),)
    inner = rest[0] if rest else ()
    if not isinstance(inner, tuple):
        return (object(),)
    shown = [x for x in inner if not isinstance(x, Iterator)]
    if any(callable(x) and not _is_without_state(x) for x in shown):
        return (object(),)  # a method of an object whose state nothing shows
    return (
        function,
        *map(repr, shown),
        *(iterator_state(x) for x in inner if isinstance(x, Iterator)),
        *map(repr, rest[1:]),
    )


def holds_recorded(values: Iterable[Any], depth: int = 3) -> bool:
    """True if a tensor of a recording, or a symbol, is among values or in the containers among them."""
    for value in values:
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) or (
            isinstance(value, Tensor) and value.is_meta
        ):
            return True
        if depth and isinstance(value, dict | list | tuple | set):
            parts = [*dict.keys(value), *dict.values(value)] if isinstance(value, dict) else list(value)
            if holds_recorded(parts, depth - 1):
                return True
    return False
