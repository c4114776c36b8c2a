"""Create the engine for `--engine NAME` or `--engine NAME:TARGET`.

An engine is one file of this folder, which defines `ENGINE`: a function, or the class itself, from the target (None
without one) and the number of workers to an `Engine`. Its name is that of the file, without `_engine`. Only the file of
the chosen engine is imported, because engines need optional packages.
"""

from __future__ import annotations

import importlib
import pkgutil

from orderproof.errors import UsageError
from orderproof.lab.engines.engine import Engine
from orderproof.optional_packages import install_command
from orderproof.registry import lookup

NO_ENGINES = {"engine", "factory"}  # the other modules of the folder


def engine_modules() -> dict[str, str]:
    """The module of each engine, by the name of the engine."""
    package = importlib.import_module("orderproof.lab.engines")
    files = [info.name for info in pkgutil.iter_modules(package.__path__) if info.name not in NO_ENGINES]
    return {name.removesuffix("_engine"): f"{package.__name__}.{name}" for name in files}


def make_engine(name: str, *, workers: int | None) -> Engine:
    """The engine with this name. Raises `UsageError` for an unknown name, a wrong target or a missing package."""
    kind, _, target = name.partition(":")
    module = lookup(kind, engine_modules(), "--engine")
    try:
        engine: Engine = importlib.import_module(module).ENGINE(target or None, workers)
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine {kind} needs the package {error.name}: {install_command(kind)}") from error
    return engine
