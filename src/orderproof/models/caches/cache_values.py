"""The tensors and numbers in a cache: tuples, lists, dictionaries, dataclasses and objects with attributes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor

Path = tuple[str, ...]
_NO_PARTS = (type, FunctionType, MethodType, ModuleType, torch.dtype, torch.device)


def mapped(value: Any, act: Callable[[Path, Any], Any], path: Path = (), made: dict[int, Any] | None = None) -> Any:
    """A copy of a cache whose tensors and integers are what `act` returns for their path and value.

    An object that is reached twice is copied once.
    """
    made = {} if made is None else made
    if isinstance(value, Tensor) or type(value) is int:
        return act(path, value)
    if id(value) in made:
        return made[id(value)]

    def part(key: object, inner: Any) -> Any:
        return mapped(inner, act, (*path, str(key)), made)

    if isinstance(value, tuple):
        parts = [part(key, inner) for key, inner in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, _NO_PARTS) or not (isinstance(value, list | Mapping) or hasattr(value, "__dict__")):
        return value
    made[id(value)] = result = copy.copy(value)
    if isinstance(value, list):
        result[:] = [part(key, inner) for key, inner in enumerate(value)]
    elif isinstance(value, Mapping) and hasattr(result, "__setitem__"):
        for key, inner in list(value.items()):
            result[key] = part(key, inner)
    for key, inner in list(getattr(value, "__dict__", {}).items()):
        vars(result)[key] = part(key, inner)
    return result


def leaves(value: Any) -> dict[Path, Tensor | int]:
    """The tensors and integers in a cache by their paths."""
    found: dict[Path, Tensor | int] = {}

    def keep(path: Path, leaf: Any) -> Any:
        found[path] = leaf
        return leaf

    mapped(value, keep)
    return found


def are_equal(first: Any, second: Any) -> bool:
    """True if two caches hold the same tensors and integers."""
    a, b = leaves(first), leaves(second)
    return a.keys() == b.keys() and all(_same(a[path], b[path]) for path in a)


def _same(x: Tensor | int, y: Tensor | int) -> bool:
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x.shape == y.shape and x.dtype == y.dtype and torch.equal(x, y)
    return type(x) is type(y) and bool(x == y)


def has_objects(value: Any) -> bool:
    """True if a part of the cache is an object whose methods may know more of it than its tensors show."""
    if isinstance(value, Tensor | int | float | str | None):
        return False
    if isinstance(value, list | tuple):
        return any(map(has_objects, value))
    if type(value) is dict:
        return any(map(has_objects, value.values()))
    return not isinstance(value, _NO_PARTS)


def set_contents(target: Any, source: Any) -> None:
    """Give a list, dictionary or object the contents of another one."""
    if isinstance(target, list):
        target[:] = source
        return
    held, new = (one if isinstance(one, dict) else vars(one) for one in (target, source))
    held.clear()
    held.update(new)
