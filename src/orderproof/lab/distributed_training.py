"""Train one run of the lab on several ranks, with long rows split over them; or check it against one process.

    torchrun --standalone --nproc-per-node=2 -m orderproof.lab.distributed_training python_source \\
        encoding=alibi train_lengths=[4096,4096] batch=1 --check

    step t:   batch, rate = those of `orderproof.lab.trainer`, the same on every rank
              gradient    = sum of the gradients of all ranks
              w           <- AdamW(w, clipped gradient)

The training loop is that of `orderproof.lab.trainer` with a `DistributedStrategy`. With one rank on a CPU, losses and
weights are bit-identical to those of the lab; otherwise they differ by rounding. Without torchrun it is one process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import torch
import typer
from safetensors.torch import save
from torch import distributed

from orderproof.blocks import Transformer
from orderproof.blocks.sequence_parallel import RankGroup, TokenSplit
from orderproof.errors import OrderproofError, UsageError
from orderproof.lab.distributed import DistributedStrategy, SequenceParallelMethod, full_tensor
from orderproof.lab.model import build_model
from orderproof.lab.run_config import RunConfig
from orderproof.lab.study import parse_run
from orderproof.lab.trainer import (
    check_finite_loss,
    compute_gradients,
    deterministic,
    make_optimiser,
    train_steps,
    training_batch,
)
from orderproof.report.file_output import write_file

MAX_GRADIENT_DIFFERENCE = 1e-9
"""Accepted difference of float64 gradients from one process, relative to the largest; rounding is below 1e-12."""

StepCallback = Callable[[int, float, float], None]


def train(
    run: RunConfig, strategy: DistributedStrategy, *, device: torch.device, dtype: torch.dtype = torch.float32,
    steps: int | None = None, on_step: StepCallback | None = None,
) -> Transformer:  # fmt: skip
    """Train a run and return its model. ``steps`` stops earlier, with the learning rates of the whole run.

    ``on_step`` is called after each step with its number, the loss before it [nats], and the speed [tokens/s]. Raises
    `UsageError` where a row cannot be split over the ranks, or training diverges.
    """
    model = prepare_model(run, strategy, device=device, dtype=dtype)
    optimiser = make_optimiser(run, model)
    strategy.prepare_optimiser(optimiser)
    last = run.steps if steps is None else min(steps, run.steps)
    with _deterministic_on_cpu(device):
        for step in train_steps(run, model, optimiser, strategy, last=last):
            loss = check_finite_loss(step.loss, step.number)
            if on_step is not None:
                on_step(step.number, loss, step.tokens / step.seconds)
    return model


def prepare_model(
    run: RunConfig, strategy: DistributedStrategy, *, device: torch.device, dtype: torch.dtype = torch.float32
) -> Transformer:
    """The run's model before its first step, on every rank. Raises `UsageError` where a row cannot be split."""
    low, high = run.effective_train_lengths
    parts = (
        1 if strategy.ranks.world_size == 1 else strategy.ranks.world_size * (2 if strategy.split == "zig-zag" else 1)
    )
    for length in range(low, high + 1):
        if (tokens := run.question.row_length(length)) % parts:
            raise UsageError(
                f"train_lengths: expected rows of a multiple of {parts} tokens for a {strategy.split} split over "
                f"{strategy.ranks.world_size} ranks, got length {length} with {tokens}; give train_lengths that fit"
            )
    model = build_model(run).to(device, dtype)
    strategy.prepare_model(model)
    return model


def compare_with_one_process(
    run: RunConfig, strategy: DistributedStrategy, *, device: torch.device
) -> tuple[float, float]:
    """The differences of the first step's loss and gradient from those of one process, in float64.

    The first is relative to the loss, the second to the largest element of the gradient.
    """
    losses, gradients = [], []
    for each in (strategy, DistributedStrategy(ranks=RankGroup(rank=0, world_size=1))):
        model = prepare_model(run, each, device=device, dtype=torch.float64)
        with _deterministic_on_cpu(device):
            losses.append(compute_gradients(run, model, training_batch(run, 1), each))
        gradients.append([full_tensor(torch.zeros_like(p) if p.grad is None else p.grad) for p in model.parameters()])
    largest = max(float(x.abs().max()) for x in gradients[1])
    difference = max(float((a - b).abs().max()) for a, b in zip(*gradients, strict=True))
    return float((losses[0] - losses[1]).abs() / losses[1].abs()), difference / largest


def save_weights(run: RunConfig, model: Transformer, file: Path, ranks: RankGroup) -> None:
    """Write the weights and the configuration from the first rank, atomically; every rank must call it."""
    weights = {name: full_tensor(x).contiguous() for name, x in model.state_dict().items()}
    if ranks.rank == 0:
        write_file(save(weights, {"orderproof": json.dumps({"run": run.id, "config": run.to_dict()})}), file)


def _deterministic_on_cpu(device: torch.device) -> AbstractContextManager[None]:
    """`deterministic` on a CPU. On a GPU, torch refuses matrix products in that mode unless CUDA is configured."""
    return deterministic() if device.type == "cpu" else nullcontext()


@contextmanager
def process_group() -> Iterator[torch.device]:
    """Join the process group that torchrun started, if any, and yield this rank's device."""
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if gpu else torch.device("cpu")
    if "RANK" not in os.environ:
        yield device
        return
    if gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if gpu else "gloo")
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def main(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="One of `orderproof list questions`.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Settings of the run: encoding=alibi, train_lengths=[4096,4096]."
        ),
    ] = None,
    *,
    method: Annotated[
        SequenceParallelMethod, typer.Option("--method", help="How queries meet the keys of other ranks.")
    ] = "gather",
    split: Annotated[TokenSplit, typer.Option(help="Which tokens a rank holds.")] = "zig-zag",
    fsdp: Annotated[bool, typer.Option("--fsdp", help="Shard the weights over the ranks.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="First compare with one process; exit code 1 if they differ.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=0, help="Stop after this number of the run's steps.")] = None,
    weights_file: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the final weights (safetensors).")
    ] = None,
) -> None:
    """Train one run with its rows split over the ranks that torchrun started; print the loss of each step."""
    try:
        run = parse_run(question, settings or [])
        if weights_file is not None and not weights_file.expanduser().parent.is_dir():
            raise UsageError(
                f"--save: expected a file in a folder that exists, got {str(weights_file)!r}; make the folder first"
            )
        with process_group() as device:
            strategy = DistributedStrategy(method=method, split=split, fsdp=fsdp)
            differs = _run(run, strategy, device=device, check=check, steps=steps, weights_file=weights_file)
    except OrderproofError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    sys.exit(int(differs))


def _run(
    run: RunConfig,
    strategy: DistributedStrategy,
    *,
    device: torch.device,
    check: bool,
    steps: int | None,
    weights_file: Path | None,
) -> bool:
    """Check, train and save, with messages from the first rank; whether the check found more than rounding."""

    def echo(message: str) -> None:
        if strategy.ranks.rank == 0:
            typer.echo(message)

    ranks = "1 rank" if strategy.ranks.world_size == 1 else f"{strategy.ranks.world_size} ranks"
    echo(f"{run.question.name}, {run.encoding}: run {run.id} over {ranks}, {strategy.split}, {strategy.method}")
    differs = False
    if check:
        in_loss, in_gradient = compare_with_one_process(run, strategy, device=device)
        differs = not max(in_loss, in_gradient) <= MAX_GRADIENT_DIFFERENCE
        note = " TOO LARGE" if differs else ""
        echo(f"difference from one process, in float64: loss {in_loss:.1e}, gradients {in_gradient:.1e}{note}")

    def on_step(number: int, loss: float, speed: float) -> None:
        echo(f"step {number}  loss {loss:.4f}  {speed:.0f} tokens/s")

    model = train(run, strategy, device=device, steps=steps, on_step=on_step)
    if weights_file is not None:
        save_weights(run, model, weights_file, strategy.ranks)
        echo(f"weights: {weights_file}")
    return differs


if __name__ == "__main__":
    typer.run(main)
