"""Create the engine for `--engine NAME` or `--engine NAME:TARGET`.

An engine is one file of this folder, which defines `ENGINE`: a function, or the class itself, from the target (None
without one) and the number of workers to an `Engine`.
"""

from __future__ import annotations

from orderproof import engine_files
from orderproof.lab.engines.engine import Engine

PACKAGE = "orderproof.lab.engines"
NO_ENGINES = {"engine", "factory"}  # the other modules of the folder


def engine_modules() -> dict[str, str]:
    """The module of each engine, by the name of the engine."""
    return engine_files.engine_modules(PACKAGE, NO_ENGINES)


def make_engine(name: str, *, workers: int | None) -> Engine:
    """The engine with this name. Raises `UsageError` for an unknown name, a wrong target or a missing package."""
    module, target = engine_files.import_engine(name, PACKAGE, NO_ENGINES)
    engine: Engine = module.ENGINE(target, workers)
    return engine
