"""torch._dynamo, imported only when something is compiled.

torch derives the layout of some results in Python, by functions that it marks as not to be compiled. At the first call
of each, the mark imports torch._dynamo, which takes as long as torch itself. Libraries mark functions where they define
them. Nothing is compiled before that import, so the marks have no effect until then.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NAME = "torch._dynamo"


class _LateDynamo(ModuleType):
    """Stands for torch._dynamo until something else of it is asked for than a mark."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.marked: list[tuple[str, Any]] = []

    def allow_in_graph(self, function: Any) -> Any:
        """The function, marked as soon as torch._dynamo is there."""
        self.marked.append(("allow_in_graph", function))
        return function

    def assume_constant_result(self, function: Any) -> Any:
        """The function, marked as soon as torch._dynamo is there."""
        self.marked.append(("assume_constant_result", function))
        return function

    def disable(self, function: Callable[..., Any] | None = None, *settings: Any, **more: Any) -> Callable[..., Any]:
        """The function, marked as soon as torch._dynamo is there; without one, the mark."""
        if function is None:
            return lambda given: self.disable(given, *settings, **more)
        marked: list[Callable[..., Any]] = []

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            loaded = sys.modules.get(_NAME)
            if loaded is None or isinstance(loaded, _LateDynamo):
                return function(*args, **kwargs)
            if not marked:
                marked.append(loaded.disable(function, *settings, **more))
            return marked[0](*args, **kwargs)

        return call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # of the import itself; the path is asked for submodules
            raise AttributeError(name)
        self.make_room()
        return getattr(importlib.import_module(_NAME), name)

    def make_room(self) -> None:
        """Let the next import be that of torch._dynamo, which then gets the marks."""
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
            if self.marked:
                sys.meta_path.insert(0, _Marks(self.marked))


class _Marks:
    """Finds torch._dynamo as Python does, and makes marks when it is there."""

    def __init__(self, marked: list[tuple[str, Any]]) -> None:
        self._marked = marked

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """The module, the first time it is looked for."""
        if name != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_mark(module: ModuleType) -> None:
            execute(module)
            for mark, function in self._marked:
                getattr(module, mark)(function)

        spec.loader.exec_module = execute_and_mark  # type: ignore[method-assign]
        return spec


@contextmanager
def late_dynamo() -> Iterator[None]:
    """Let torch mark functions in the block without the import of torch._dynamo."""
    if _NAME in sys.modules:
        yield
        return
    stand_in = sys.modules[_NAME] = _LateDynamo(_NAME)
    try:
        yield
    finally:
        stand_in.make_room()
