"""Attributes and items of objects, whatever their classes answer.

A class may define `__dict__`, `__class__`, `__mro__`, `__iter__` or `__eq__`, and a model may keep state behind such an
answer. Here dictionaries are asked of Python itself, and items of the base class.
"""

from __future__ import annotations

import ctypes
from collections import deque
from types import MappingProxyType, ModuleType
from typing import Any

_ATTRIBUTES = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(("PyObject_GenericGetDict", ctypes.pythonapi))
_ROOM = type.__dict__["__dictoffset__"].__get__
_NAMESPACE, _ORDER = type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__
_WITH_ITEMS = (list, deque, set, frozenset, tuple)


def is_a(value: object, kinds: Any) -> bool:
    """True if the class of an object is, or derives from, one of these; `isinstance` would ask the object."""
    return issubclass(type(value), kinds)


def attributes_of(value: object) -> dict[str, Any] | None:
    """The attributes of an object that is no class; None if it has no room for any.

    Not `__dict__`, for which the class of a model may have another answer.
    """
    if not _ROOM(type(value)):
        return None
    found: dict[str, Any] = _ATTRIBUTES(value)
    return found


def variables_in(module: ModuleType) -> dict[str, Any]:
    """The variables of a module, whatever its class answers."""
    found = attributes_of(module)
    assert found is not None
    return found


def class_attributes(kind: type) -> MappingProxyType[str, Any]:
    """The attributes of a class, whatever its metaclass answers."""
    found: MappingProxyType[str, Any] = _NAMESPACE(kind)
    return found


def bases_of(kind: type) -> tuple[type, ...]:
    """A class and all that it derives from, whatever its metaclass answers."""
    found: tuple[type, ...] = _ORDER(kind)
    return found


def items_of(value: Any) -> tuple[Any, ...]:
    """The items of a list or another container, whatever its class answers when it is iterated over."""
    base: Any = next(base for base in _WITH_ITEMS if is_a(value, base))
    return tuple(base.__iter__(value))
