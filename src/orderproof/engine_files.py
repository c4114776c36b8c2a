"""Engines as files of a folder: `--engine NAME` or `--engine NAME:TARGET`.

The name of an engine is that of its file, without `_engine`. Only the file of the chosen engine is imported, because
engines need optional packages.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from types import ModuleType

from orderproof.errors import UsageError
from orderproof.optional_packages import install_command
from orderproof.registry import lookup


def engine_modules(package: str, others: Collection[str]) -> dict[str, str]:
    """The module of each engine of a package, by the name of the engine; `others` are its other modules."""
    folder = importlib.import_module(package).__path__
    files = [info.name for info in pkgutil.iter_modules(folder) if info.name not in others]
    return {name.removesuffix("_engine"): f"{package}.{name}" for name in files}


def import_engine(name: str, package: str, others: Collection[str]) -> tuple[ModuleType, str | None]:
    """The module of an engine and its target. Raises `UsageError` for an unknown name or a missing package."""
    kind, _, target = name.partition(":")
    module = lookup(kind, engine_modules(package, others), "--engine")
    try:
        return importlib.import_module(module), target or None
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine {kind} needs the package {error.name}: {install_command(kind)}") from error
