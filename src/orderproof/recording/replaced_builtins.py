"""Functions of Python that are replaced in the code of a model, for as long as it is recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from torch import nn


@contextmanager
def replaced_builtins(module: nn.Module, replacements: Mapping[str, Any]) -> Iterator[None]:
    """Under this, the modules of Python in which a model is defined find replacements of builtins under their names."""
    parts = list(module.modules())
    names = {kind.__module__ for part in parts for kind in type(part).__mro__}
    names |= {held.__module__ for part in parts for held in vars(part).values() if isinstance(held, FunctionType)}
    spaces: list[Mapping[str, Any]] = [
        vars(sys.modules[name]) for name in names if name in sys.modules and not name.startswith(("torch.", "builtins"))
    ]
    changed = [(space, name) for space in spaces for name in replacements if name not in space]
    for space, name in changed:
        space[name] = replacements[name]  # type: ignore[index]
    try:
        yield
    finally:
        for space, name in changed:
            del space[name]  # type: ignore[attr-defined]
