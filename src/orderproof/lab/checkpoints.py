"""The training state of a run in one safetensors file, which is complete or absent.

It holds the step, the weights, the moments of the optimiser and the learning curve, with a digest of all of them. The
data need no state: the batch of a step is drawn by a generator seeded with the run's seed and the step.
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
from orderproof.report.file_output import write_file

MODEL_PREFIX, OPTIMISER_PREFIX = "model.", "moment."


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The progress of a run."""

    step: int
    curve: list[dict[str, float]]
    seconds: float
    """Training time so far, over all attempts."""


def save_checkpoint(
    file: Path, model: nn.Module, optimiser: torch.optim.Optimizer, progress: TrainingProgress, *, run: str, code: str
) -> None:
    """Write the state, replacing an older one. Raises `StoreError` if that fails."""
    tensors: dict[str, Tensor] = {f"{MODEL_PREFIX}{name}": x for name, x in model.state_dict().items()}
    for number, moments in optimiser.state_dict()["state"].items():
        tensors.update({f"{OPTIMISER_PREFIX}{number}.{name}": x for name, x in moments.items()})
    metadata: dict[str, Any] = {
        "run": run,
        "code": code,
        "step": progress.step,
        "curve": progress.curve,
        "seconds": progress.seconds,
    }
    metadata["digest"] = _digest(tensors, metadata)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(save(tensors, {"orderproof": json.dumps(metadata)}), file)
    except (OSError, UsageError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__ or error
        if isinstance(cause, FileNotFoundError) and file.parent.is_dir():
            return  # another process finished this run and deleted its checkpoint
        raise StoreError(
            f"cannot write a checkpoint in {str(file.parent)!r}: {getattr(cause, 'strerror', None) or cause}; free "
            "some space or pass another --store, then repeat the command to resume"
        ) from error


def load_checkpoint(
    file: Path, model: nn.Module, optimiser: torch.optim.Optimizer, *, run: str, code: str
) -> TrainingProgress:
    """Restore the state of a run. Raises `CheckpointError` if the file is damaged or belongs to another run."""
    try:
        with safe_open(file, framework="pt") as opened:
            metadata: dict[str, Any] = json.loads((opened.metadata() or {})["orderproof"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is no mapping
        if (metadata["run"], metadata["code"]) != (run, code):
            owner = f"run {metadata['run']} of code {metadata['code']}, not to {run} of {code}"
            raise CheckpointError(f"{file} belongs to {owner}; remove it")
        if metadata.pop("digest") != _digest(tensors, metadata):
            raise ValueError("its content does not match its digest")
        model.load_state_dict(
            {name.removeprefix(MODEL_PREFIX): x for name, x in tensors.items() if name.startswith(MODEL_PREFIX)}
        )
        state = optimiser.state_dict()
        state["state"] = {}
        for name, x in tensors.items():
            if name.startswith(OPTIMISER_PREFIX):
                number, _, moment = name.removeprefix(OPTIMISER_PREFIX).partition(".")
                state["state"].setdefault(int(number), {})[moment] = x
        optimiser.load_state_dict(state)
        return TrainingProgress(
            step=int(metadata["step"]), curve=list(metadata["curve"]), seconds=float(metadata["seconds"])
        )
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        cause = " ".join(str(error).split())[:120]
        raise CheckpointError(f"{file} cannot be read as a checkpoint of run {run} ({cause}); remove it") from error


def _digest(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, x in sorted(tensors.items()):
        digest.update(name.encode() + x.contiguous().numpy().tobytes())
    return digest.hexdigest()
