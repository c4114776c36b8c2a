"""Code that no file holds, as that of a notebook."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def notebook(*parts: ModuleType | type, **names: Any) -> Iterator[ModuleType]:
    """A module with these modules and classes, executed as text; ``names`` are what they use besides."""
    module = ModuleType("notebook")
    vars(module).update(names)
    sys.modules["notebook"] = module
    try:
        for part in parts:
            exec(compile(inspect.getsource(part), "<cell>", "exec"), vars(module))
        yield module
    finally:
        del sys.modules["notebook"]
