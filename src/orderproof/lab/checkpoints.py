"""The state of a run between two steps, in one safetensors file that is whole or absent.

What is kept: the step, the weights, the optimiser's moments, and the learning curve so far, with a digest of it all.
The data needs no state: the batch of a step is drawn by a generator seeded with the run's seed and the step.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from orderproof.errors import CheckpointError, StoreError, UsageError
from orderproof.report.destination import write

MODEL, MOMENT = "model.", "moment."


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run has come."""

    step: int
    curve: list[dict[str, float]]
    seconds: float
    """Spent so far, over all attempts."""


def keep(
    file: Path, model: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress, *, run: str, code: str
) -> None:
    """Write the state, in place of an older one. Raises `StoreError` where that cannot be done."""
    tensors: dict[str, Tensor] = {f"{MODEL}{name}": x for name, x in model.state_dict().items()}
    for number, moments in optimiser.state_dict()["state"].items():
        tensors.update({f"{MOMENT}{number}.{name}": x for name, x in moments.items()})
    told: dict[str, Any] = {
        "run": run,
        "code": code,
        "step": progress.step,
        "curve": progress.curve,
        "seconds": progress.seconds,
    }
    told["digest"] = _digest(tensors, told)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(save(tensors, {"orderproof": json.dumps(told)}), file)
    except (OSError, UsageError) as error:
        why = error if isinstance(error, OSError) else error.__cause__ or error
        if isinstance(why, FileNotFoundError) and file.parent.is_dir():
            return  # another process has finished this very run, and removed what is kept of it
        raise StoreError(
            f"cannot keep a checkpoint in {str(file.parent)!r}: {getattr(why, 'strerror', None) or why}; make room or "
            "give another --store, and the same command goes on from what is kept"
        ) from error


def restore(file: Path, model: nn.Module, optimiser: torch.optim.Optimizer, *, run: str, code: str) -> Progress:
    """Put back what was kept. Raises `CheckpointError` where the file is not what this run kept."""
    try:
        with safe_open(file, framework="pt") as held:
            told: dict[str, Any] = json.loads((held.metadata() or {})["orderproof"])
            tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118 - it is no mapping
        if (told["run"], told["code"]) != (run, code):
            whose = f"run {told['run']} of code {told['code']}, not to {run} of {code}"
            raise CheckpointError(f"{file} belongs to {whose}; remove it")
        if told.pop("digest") != _digest(tensors, told):
            raise ValueError("what it holds is not what was written")
        model.load_state_dict({name.removeprefix(MODEL): x for name, x in tensors.items() if name.startswith(MODEL)})
        state = optimiser.state_dict()
        state["state"] = {}
        for name, x in tensors.items():
            if name.startswith(MOMENT):
                number, _, moment = name.removeprefix(MOMENT).partition(".")
                state["state"].setdefault(int(number), {})[moment] = x
        optimiser.load_state_dict(state)
        return Progress(step=int(told["step"]), curve=list(told["curve"]), seconds=float(told["seconds"]))
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:120]
        raise CheckpointError(f"{file} cannot be read as a checkpoint of run {run} ({why}); remove it") from error


def _digest(tensors: dict[str, Tensor], told: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, x in sorted(tensors.items()):
        digest.update(name.encode() + x.contiguous().numpy().tobytes())
    return digest.hexdigest()
