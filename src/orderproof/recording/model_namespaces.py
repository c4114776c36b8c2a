"""The namespaces of Python in which the code of a model runs: those of its classes, and of functions that they name."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn

from orderproof.recording.source import is_model_code

MAX_FUNCTIONS = 1000  # that are followed
CachedFunction = functools._lru_cache_wrapper


class ModelNamespaces:
    """The namespaces of a model, and the functions in them that keep their results.

    Attributes:
        spaces: The namespaces.
        cached: The functions under `functools.lru_cache` that its code names: the namespace and the name of each.

    """

    def __init__(self, module: nn.Module) -> None:
        self._spaces: dict[int, dict[str, Any]] = {}
        self.cached: list[tuple[dict[str, Any], str]] = []
        self._queue: list[FunctionType] = []
        self._seen: set[int] = set()
        parts = list(module.modules())
        kinds = dict.fromkeys(kind for part in parts for kind in type(part).__mro__)
        held = [value for part in parts for value in vars(part).values() if isinstance(value, FunctionType)]
        for name in dict.fromkeys([*(kind.__module__ for kind in kinds), *(one.__module__ for one in held)]):
            if name in sys.modules and not name.startswith(("torch.", "builtins")):
                self._add(vars(sys.modules[name]))
        for value in [*held, *(value for kind in kinds for value in vars(kind).values())]:
            self._follow(value)
        while self._queue and len(self._seen) < MAX_FUNCTIONS:
            self._names_of(self._queue.pop())

    @property
    def spaces(self) -> list[dict[str, Any]]:
        """The namespaces."""
        return list(self._spaces.values())

    def _add(self, space: dict[str, Any]) -> None:
        self._spaces.setdefault(id(space), space)

    def _follow(self, value: Any) -> None:
        """Add a function, or the one behind a descriptor, a decorator or a cache."""
        for name in ("__func__", "fget", "__wrapped__"):
            inner = getattr(value, name, None) if isinstance(value, _WRAPPERS) else None
            if isinstance(inner, (FunctionType, CachedFunction)):
                self._follow(inner)
        if (
            isinstance(value, FunctionType)
            and id(value) not in self._seen
            and is_model_code(value.__code__.co_filename)
        ):
            self._seen.add(id(value))
            self._queue.append(value)

    def _names_of(self, function: FunctionType) -> None:
        """Add what a function names: other functions, those of modules, and those that it encloses."""
        space = function.__globals__
        self._add(space)
        for cell in function.__closure__ or ():
            try:
                self._follow(cell.cell_contents)
            except ValueError:  # an empty cell
                continue
        names = set(_names(function.__code__))
        modules = [value for name in names if isinstance(value := space.get(name), ModuleType)]
        for one in (space, *map(vars, modules)):
            for name in names & one.keys():
                if isinstance(one[name], CachedFunction) and is_model_code(_file(one[name])):
                    self.cached.append((one, name))
                self._follow(one[name])


_WRAPPERS = (staticmethod, classmethod, property, FunctionType, CachedFunction)


def _file(function: Any) -> str:
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return code.co_filename if isinstance(code, CodeType) else "<frozen unknown>"


def _names(code: CodeType) -> Iterator[str]:
    """The global names and attributes in a function, and in those that it defines."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)
