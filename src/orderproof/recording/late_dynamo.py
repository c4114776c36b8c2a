"""torch._dynamo, imported only when something is compiled.

torch derives the layout of some results in Python, by functions that it marks as not to be compiled. At the first call
of each, the mark imports torch._dynamo, which takes as long as torch itself. Nothing is compiled before that import, so
the mark has no effect until then.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_NAME = "torch._dynamo"


class _LateDynamo(ModuleType):
    """Stands for torch._dynamo until something else of it is asked for than the mark."""

    def disable(self, function: Callable[..., Any], *settings: Any, **more: Any) -> Callable[..., Any]:
        """The function, marked as soon as torch._dynamo is there."""
        marked: list[Callable[..., Any]] = []

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
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


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
        if sys.modules.get(_NAME) is stand_in:
            del sys.modules[_NAME]
