"""Create the engine for `--engine`."""

from __future__ import annotations

from orderproof.errors import UsageError
from orderproof.lab.engines.engine import Engine

ENGINE_NAMES = "local, ray, ray:ADDRESS, slurm or slurm:PARTITION"


def make_engine(name: str, *, workers: int | None) -> Engine:
    """The engine with this name. Raises `UsageError` for an unknown name or a missing package."""
    kind, _, target = name.partition(":")
    try:
        if kind == "local" and not target:
            from orderproof.lab.engines.local import LocalEngine

            return LocalEngine(workers)
        if kind == "ray":
            from orderproof.lab.engines.ray_engine import RayEngine

            return RayEngine(address=target or None, workers=workers)
        if kind == "slurm":
            from orderproof.lab.engines.slurm import SlurmEngine

            return SlurmEngine(partition=target or None, workers=workers)
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine {kind} needs the package {error.name}: pip install 'orderproof[{kind}]'") from error
    raise UsageError(f"expected --engine {ENGINE_NAMES}; got {name!r}")
