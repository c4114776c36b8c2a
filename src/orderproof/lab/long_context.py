"""Train one run of the lab on long rows that are spread over ranks; or see that it is the same as on one.

    torchrun --standalone --nproc-per-node=2 -m orderproof.lab.long_context python_source \\
        encoding=alibi train_lengths=[4096,4096] batch=1 --check

    step t:   batch, rate = the lab's of step t        the same on every rank
              gradient    = sum over ranks of each one's share
              w           <- AdamW(w, gradient, no longer than the run's clip)

What is trained is what `orderproof.lab.training` trains, and one step is its step; only who works out which tokens
differs. With one rank on a CPU, losses and weights are the lab's bit for bit; else they differ by rounding. Started
without torchrun it is one process, by the same code.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import torch
import typer
from safetensors.torch import save as packed
from torch import Tensor, distributed

from orderproof.blocks import Transformer
from orderproof.blocks.spread import Ranks, Split
from orderproof.errors import OrderproofError, UsageError
from orderproof.lab.configuration import RunConfig
from orderproof.lab.network import build
from orderproof.lab.question import Batch
from orderproof.lab.spreading import Spreading, Way, entire
from orderproof.lab.study import single
from orderproof.lab.training import batch_of, deterministic, finite, learning_rate, optimiser_of
from orderproof.report.destination import write

BOUND = 1e-9
"""How far float64 gradients may be from those of one process, relative to the largest: rounding is below 1e-12."""

Told = Callable[[int, float, float], None]


def train(
    run: RunConfig, spreading: Spreading, *, device: torch.device, dtype: torch.dtype = torch.float32,
    steps: int | None = None, told: Told | None = None,
) -> Transformer:  # fmt: skip
    """Train, and give the model; ``steps`` stops short of the run's, whose rates stay as they are.

    ``told`` is called after each step with its number, the loss before it [nats], and the speed [tokens/s].
    """
    model = prepared(run, spreading, device=device, dtype=dtype)
    optimiser = optimiser_of(run, model)
    spreading.prepare_optimiser(optimiser)
    for number in range(1, (run.steps if steps is None else min(steps, run.steps)) + 1):
        began = time.perf_counter()
        with _repeatable(device):
            batch = batch_of(run, number)
            loss = finite(step(run, model, optimiser, spreading, number, batch), number)
        if told is not None:
            told(number, loss, batch.tokens.numel() / (time.perf_counter() - began))
    return model


def prepared(
    run: RunConfig, spreading: Spreading, *, device: torch.device, dtype: torch.dtype = torch.float32
) -> Transformer:
    """The run's model before its first step, on every rank. Raises `UsageError` where a row cannot be spread."""
    low, high = run.trained
    parts = 1 if spreading.ranks.count == 1 else spreading.ranks.count * (2 if spreading.split == "zig-zag" else 1)
    for length in range(low, high + 1):
        if (tokens := run.question.tokens(length)) % parts:
            raise UsageError(
                f"train_lengths: expected rows of a multiple of {parts} tokens for a {spreading.split} split over "
                f"{spreading.ranks.count} ranks, got length {length} with {tokens}; give train_lengths that fit"
            )
    model = build(run).to(device, dtype)
    spreading.prepare(model)
    return model


def step(
    run: RunConfig, model: Transformer, optimiser: torch.optim.Optimizer, spreading: Spreading, number: int,
    batch: Batch,
) -> Tensor:  # fmt: skip
    """One step of training, the first being number 1; gives the loss before it, alike on all ranks."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(run, number)
    loss = gradients(run, model, spreading, batch)
    optimiser.step()
    return loss


def gradients(run: RunConfig, model: Transformer, spreading: Spreading, batch: Batch) -> Tensor:
    """Leave in the parameters the gradient that a step goes by, and give the loss of its batch."""
    device = next(model.parameters()).device
    model.zero_grad(set_to_none=True)
    loss = spreading.loss(model, batch.tokens.to(device), batch.targets.to(device))
    torch.autograd.backward(loss)
    spreading.gather(model)
    if run.clip is not None:
        spreading.clip(model, run.clip)
    return loss.detach()


def differences(run: RunConfig, spreading: Spreading, *, device: torch.device) -> tuple[float, float]:
    """How far the loss and the gradient of the first step are from those of one process, in float64.

    Relative to the loss, and to the largest element of the gradient.
    """
    found = []
    for how in (spreading, Spreading(ranks=Ranks(number=0, count=1))):
        model = prepared(run, how, device=device, dtype=torch.float64)
        with _repeatable(device):
            loss = gradients(run, model, how, batch_of(run, 1))
        found.append((loss, [entire(torch.zeros_like(p) if p.grad is None else p.grad) for p in model.parameters()]))
    (loss, spread), (plain, alone) = found
    largest = max(float(one.abs().max()) for one in alone)
    apart = max(float((a - b).abs().max()) for a, b in zip(spread, alone, strict=True))
    return float((loss - plain).abs() / plain.abs()), apart / largest


def save(run: RunConfig, model: Transformer, file: Path, ranks: Ranks) -> None:
    """Write the weights, and what was run, from the first rank, whole or not at all; every rank must call it."""
    weights = {name: entire(x).contiguous() for name, x in model.state_dict().items()}
    if ranks.number == 0:
        write(packed(weights, {"orderproof": json.dumps({"run": run.id, "config": run.plain()})}), file)


def _repeatable(device: torch.device) -> AbstractContextManager[None]:
    """As the lab does its sums on a CPU. On a GPU torch would refuse matrix products unless CUDA is set up for it."""
    return deterministic() if device.type == "cpu" else nullcontext()


@contextmanager
def started() -> Iterator[torch.device]:
    """Within it, the ranks that torchrun started talk; gives the device of this one."""
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
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="As `orderproof list questions` has them.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Of the run: encoding=alibi, train_lengths=[4096,4096], seed=1."),
    ] = None,
    *,
    way: Annotated[Way, typer.Option(help="How queries and keys of different ranks meet.")] = "gather",
    split: Annotated[Split, typer.Option(help="Which tokens a rank has.")] = "zig-zag",
    fsdp: Annotated[bool, typer.Option("--fsdp", help="Keep a part of the weights on each rank.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with one process first; 1 at the end if far.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=0, help="Stop after so many of the run's steps.")] = None,
    kept: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the last weights (safetensors).")
    ] = None,
) -> None:
    """Train one run on rows spread over the ranks that torchrun started; print the loss of each step."""
    try:
        run = single(question, settings or [])
        if kept is not None and not kept.expanduser().parent.is_dir():
            raise UsageError(
                f"--save: expected a file in a folder that exists, got {str(kept)!r}; make the folder first"
            )
        with started() as device:
            spreading = Spreading(way=way, split=split, fsdp=fsdp)
            far = _told(run, spreading, device=device, check=check, steps=steps, kept=kept)
    except OrderproofError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    sys.exit(int(far))


def _told(
    run: RunConfig, spreading: Spreading, *, device: torch.device, check: bool, steps: int | None, kept: Path | None
) -> bool:
    """Check, train and save, and tell of it on the first rank; whether the check found more than rounding."""
    say = typer.echo if spreading.ranks.number == 0 else _nothing
    way = type(spreading.attention).__name__.lower()
    ranks = "1 rank" if spreading.ranks.count == 1 else f"{spreading.ranks.count} ranks"
    say(f"{run.question.name}, {run.encoding}: run {run.id} over {ranks}, {spreading.split}, {way}")
    far = False
    if check:
        loss_apart, apart = differences(run, spreading, device=device)
        far = not max(loss_apart, apart) <= BOUND
        say(f"beside one process, in float64: loss {loss_apart:.1e}, gradients {apart:.1e}{' TOO FAR' if far else ''}")

    def tell(number: int, loss: float, speed: float) -> None:
        say(f"step {number}  loss {loss:.4f}  {speed:.0f} tokens/s")

    model = train(run, spreading, device=device, steps=steps, told=tell)
    if kept is not None:
        save(run, model, kept, spreading.ranks)
        say(f"weights: {kept}")
    return far


def _nothing(message: str) -> None:
    del message


if __name__ == "__main__":
    typer.run(main)
