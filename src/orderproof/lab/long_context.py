"""Train one model on long rows that are spread over ranks; or see that it is the same as on one.

    torchrun --nproc-per-node=2 -m orderproof.lab.long_context --encoding alibi --tokens 4096 --check

The rows are drawn: words at random, and what is asked at each is the word that stood half a row before. To answer, a
token must find one that far away, mostly on another rank, by where it stands alone. Started without torchrun it is one
process, by the same code.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import torch
import typer
from torch import Tensor, distributed, nn

from orderproof.blocks import Transformer
from orderproof.blocks.spread import Ranks, Split
from orderproof.errors import OrderproofError
from orderproof.lab.question import UNSCORED, Batch
from orderproof.lab.spreading import Spreading, Way

BOUND = 1e-9
"""How far float64 gradients may be from those of one process, relative to the largest: rounding is below 1e-12."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What is trained."""

    encoding: str = "rotary"
    causal: bool = True
    tokens: int = 1024
    rows: int = 1
    vocabulary: int = 16
    width: int = 64
    heads: int = 4
    layers: int = 2
    learning_rate: float = 1e-3
    seed: int = 0

    def model(self, *, device: torch.device, dtype: torch.dtype = torch.float32) -> Transformer:
        """The model as it begins."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            made = Transformer(
                self.width, self.heads, self.layers, encoding=self.encoding, causal=self.causal,
                vocabulary=self.vocabulary, length=self.tokens,
            )  # fmt: skip
        return made.to(device, dtype)

    def batches(self) -> Iterator[Batch]:
        """The same rows on every rank, without end."""
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield say_again(self, generator)


def say_again(configuration: Configuration, generator: torch.Generator) -> Batch:
    """Random words, and at each in the second half of its row the one that stood half a row before."""
    shape, back = (configuration.rows, configuration.tokens), configuration.tokens // 2
    words = torch.randint(configuration.vocabulary, shape, generator=generator)
    targets = torch.full_like(words, UNSCORED)
    targets[:, back:] = words[:, : configuration.tokens - back]
    return Batch(tokens=words, targets=targets)


def train(configuration: Configuration, spreading: Spreading, *, device: torch.device) -> Iterator[tuple[float, float]]:
    """Step by step, without end: the loss before the step [nats], and how long the step took [s]."""
    model = configuration.model(device=device)
    spreading.prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=configuration.learning_rate, foreach=False)
    for batch in configuration.batches():
        began = time.perf_counter()
        loss = float(gradients(model, spreading, batch, device=device))
        optimizer.step()
        yield loss, time.perf_counter() - began


def gradients(model: Transformer, spreading: Spreading, batch: Batch, *, device: torch.device) -> Tensor:
    """Leave in the parameters the gradient of the loss of a batch, and give the loss."""
    for parameter in model.parameters():
        parameter.grad = None
    loss = spreading.loss(model, batch.tokens.to(device), batch.targets.to(device))
    torch.autograd.backward(loss)
    spreading.gather(model)
    return loss.detach()


def differences(configuration: Configuration, spreading: Spreading, *, device: torch.device) -> tuple[float, float]:
    """How far the loss and the gradients of the first batch are from those of one process, in float64.

    Relative to the loss, and to the largest of the gradients.
    """
    found = []
    for how in (spreading, Spreading(ranks=Ranks(number=0, count=1))):
        model = configuration.model(device=device, dtype=torch.float64)
        how.prepare(model)
        loss = gradients(model, how, next(configuration.batches()), device=device)
        found.append((loss, [_whole(p) for p in model.parameters()]))
    (loss, spread), (plain, alone) = found
    largest = max(float(one.abs().max()) for one in alone)
    apart = max(float((a - b).abs().max()) for a, b in zip(spread, alone, strict=True))
    return float((loss - plain).abs() / plain.abs()), apart / largest


def _whole(parameter: nn.Parameter) -> Tensor:
    """Its gradient, brought together from all ranks where FSDP2 keeps a part of it on each."""
    from torch.distributed.tensor import DTensor

    gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return gradient.full_tensor() if isinstance(gradient, DTensor) else gradient


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
    *,
    encoding: Annotated[str, typer.Option(help="A registered encoding.")] = "rotary",
    causal: Annotated[bool, typer.Option("--causal/--bidirectional")] = True,
    tokens: Annotated[int, typer.Option(min=2, help="Of a row, over all ranks.")] = 1024,
    rows: Annotated[int, typer.Option(min=1)] = 1,
    width: Annotated[int, typer.Option(min=1)] = 64,
    heads: Annotated[int, typer.Option(min=1)] = 4,
    layers: Annotated[int, typer.Option(min=1)] = 2,
    steps: Annotated[int, typer.Option(min=0)] = 5,
    learning_rate: Annotated[float, typer.Option(min=0.0)] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of the weights and of the rows.")] = 0,
    way: Annotated[Way, typer.Option(help="How queries and keys of different ranks meet.")] = "gather",
    split: Annotated[Split, typer.Option(help="Which tokens a rank has.")] = "zig-zag",
    fsdp: Annotated[bool, typer.Option("--fsdp", help="Keep a part of the weights on each rank.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with one process first; 1 at the end if far.")
    ] = False,
) -> None:
    """Train one model on rows spread over the ranks that torchrun started; print the loss of each step."""
    configuration = Configuration(
        encoding=encoding, causal=causal, tokens=tokens, rows=rows, width=width, heads=heads, layers=layers,
        learning_rate=learning_rate, seed=seed,
    )  # fmt: skip
    try:
        with started() as device:
            far = _run(configuration, Spreading(way=way, split=split, fsdp=fsdp), steps, device=device, check=check)
    except OrderproofError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    sys.exit(int(far))


def _run(configuration: Configuration, spreading: Spreading, steps: int, *, device: torch.device, check: bool) -> bool:
    """Check and train, and tell of it on the first rank; whether the check found more than rounding."""
    say = typer.echo if spreading.ranks.number == 0 else _nothing
    way = type(spreading.attention).__name__.lower()
    ranks = "1 rank" if spreading.ranks.count == 1 else f"{spreading.ranks.count} ranks"
    say(f"{configuration.encoding}: {configuration.tokens} tokens over {ranks}, {spreading.split}, {way}")
    far = False
    if check:
        loss_apart, apart = differences(configuration, spreading, device=device)
        far = not max(loss_apart, apart) <= BOUND
        say(f"beside one process, in float64: loss {loss_apart:.1e}, gradients {apart:.1e}{' TOO FAR' if far else ''}")
    for step, (loss, took) in enumerate(islice(train(configuration, spreading, device=device), steps)):
        say(f"step {step}  loss {loss:.4f}  {configuration.rows * configuration.tokens / took:.0f} tokens/s")
    return far


def _nothing(message: str) -> None:
    del message


if __name__ == "__main__":
    typer.run(main)
