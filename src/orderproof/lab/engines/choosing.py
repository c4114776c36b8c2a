"""The engine that `--engine` names."""

from __future__ import annotations

from orderproof.errors import UsageError
from orderproof.lab.engines.engine import Engine

KNOWN = "local, ray, ray:ADDRESS, slurm or slurm:PARTITION"


def choose(name: str, *, workers: int | None) -> Engine:
    """An engine by its name. Raises `UsageError` for one that is not known, or whose package is missing."""
    kind, _, where = name.partition(":")
    try:
        if kind == "local" and not where:
            from orderproof.lab.engines.local import Local

            return Local(workers)
        if kind == "ray":
            from orderproof.lab.engines.on_ray import OnRay

            return OnRay(address=where or None, workers=workers)
        if kind == "slurm":
            from orderproof.lab.engines.slurm import Slurm

            return Slurm(partition=where or None, workers=workers)
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine {kind} needs the package {error.name}: pip install 'orderproof[{kind}]'") from error
    raise UsageError(f"expected --engine {KNOWN}; got {name!r}")
