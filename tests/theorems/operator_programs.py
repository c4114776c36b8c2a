"""The programs of tests/theorems/operators: one file for each operator or family, found by listing the folder."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def defined_by_operators(name: str) -> list[Any]:
    """What the files of the folder list by this name: PROGRAMS, MOVED_PROGRAMS or MUTANTS."""
    folder = importlib.import_module("tests.theorems.operators")
    files = sorted(f"{folder.__name__}.{info.name}" for info in pkgutil.iter_modules(folder.__path__))
    return [one for file in files for one in getattr(importlib.import_module(file), name, [])]
