"""Functions of Python that are replaced in the code of a model, for as long as it is recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from torch import nn


@contextmanager
def replaced_builtin(module: nn.Module, name: str, replacement: Any) -> Iterator[None]:
    """Under this, the modules of Python in which a model is defined find `replacement` under the name of a builtin."""
    parts = list(module.modules())
    names = {kind.__module__ for part in parts for kind in type(part).__mro__}
    names |= {held.__module__ for part in parts for held in vars(part).values() if isinstance(held, FunctionType)}
    spaces: list[Mapping[str, Any]] = [
        vars(sys.modules[name]) for name in names if name in sys.modules and not name.startswith(("torch.", "builtins"))
    ]
    changed = [space for space in spaces if name not in space]
    for space in changed:
        space[name] = replacement  # type: ignore[index]
    try:
        yield
    finally:
        for space in changed:
            del space[name]  # type: ignore[attr-defined]
