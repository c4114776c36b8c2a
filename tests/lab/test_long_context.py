"""Training over ranks: the loss and the gradients of one process, with and without FSDP2, and under torchrun."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import torch
import typer
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import functional
from typer.testing import CliRunner

from orderproof.blocks.spread import Ranks, Ulysses
from orderproof.errors import UsageError
from orderproof.lab.long_context import BOUND, Configuration, differences, gradients, main, say_again, train
from orderproof.lab.question import UNSCORED
from orderproof.lab.spreading import Spreading
from orderproof.laws.measured.ranks import on_ranks

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
ALONE = Ranks(number=0, count=1)
FIRE = Configuration(encoding="fire", tokens=16, rows=2)  # its parameters have every kind of shape
KERPLE = Configuration(encoding="kerple", tokens=16, rows=2, causal=False)
WAYS = (
    (FIRE, Spreading(ranks=ALONE)),
    (KERPLE, Spreading(way="ulysses", split="contiguous", ranks=ALONE)),
    (FIRE, Spreading(fsdp=True, ranks=ALONE)),
    (KERPLE, Spreading(way="ulysses", fsdp=True, ranks=ALONE)),
)


def again(spreading: Spreading) -> Spreading:
    """The same over the ranks that are there now."""
    way = "ulysses" if isinstance(spreading.attention, Ulysses) else "gather"
    return Spreading(way=way, split=spreading.split, fsdp=spreading.fsdp)


@cache
def over_two() -> list[list[Tensor]]:
    """For each way: how far the first step is from that of one process; then losses of three steps; then a check."""

    def work(rank: int) -> list[Tensor]:
        made = []
        with torch.enable_grad():
            for configuration, how in WAYS:
                made.append(torch.tensor(differences(configuration, again(how), device=CPU)))
                steps = islice(train(configuration, again(how), device=CPU), 3)
                made.append(torch.tensor([loss for loss, _ in steps], dtype=torch.float64))
            made.append(begun_apart(rank))
            made.append(torch.tensor(kept()))
        return made

    return on_ranks(work, 2)


def begun_apart(rank: int) -> Tensor:
    """A weight of each rank, after ranks that drew weights of their own were prepared."""
    model = Configuration(seed=rank).model(device=CPU)
    Spreading().prepare(model)
    assert model.to_scores is not None
    return model.to_scores.weight.detach().clone()


def kept() -> list[int]:
    """How many numbers of the weights this rank keeps with FSDP2, and how many there are; of the encoding too."""
    model = FIRE.model(device=CPU)
    Spreading(fsdp=True).prepare(model)
    own = [p.to_local() if isinstance(p, DTensor) else p for p in model.parameters()]
    return [
        sum(p.numel() for p in own), sum(p.numel() for p in model.parameters()),
        sum(isinstance(p, DTensor) for p in model.encoding.parameters()),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_a_step_over_two_ranks_is_that_of_one_process(number: int) -> None:
    configuration, _ = WAYS[number]
    alone = [loss for loss, _ in islice(train(configuration, Spreading(ranks=ALONE), device=CPU), 3)]
    for made in over_two():
        assert made[2 * number].max() < BOUND
        assert torch.allclose(made[2 * number + 1], torch.tensor(alone, dtype=torch.float64), atol=1e-4)
    assert len(set(alone)) == 3


def test_all_ranks_begin_with_the_weights_of_the_first() -> None:
    first, second = (made[-2] for made in over_two())
    drawn = Configuration(seed=0).model(device=CPU).to_scores
    assert drawn is not None
    assert torch.equal(first, second)
    assert torch.equal(first, drawn.weight)


def test_fsdp_keeps_a_part_of_the_weights_and_all_of_the_encoding() -> None:
    for made in over_two():
        own, everything, of_the_encoding = made[-1].tolist()
        assert own < 0.51 * everything
        assert of_the_encoding == 0


def test_one_process_is_the_plain_step() -> None:
    model, batch = FIRE.model(device=CPU), next(FIRE.batches())
    loss = gradients(model, Spreading(ranks=ALONE, split="contiguous"), batch, device=CPU)
    found = [p.grad for p in model.parameters()]
    model.zero_grad()
    plain = functional.cross_entropy(model(batch.tokens).mT, batch.targets, ignore_index=UNSCORED)
    plain.backward()
    assert torch.allclose(loss, plain)
    for mine, p in zip(found, model.parameters(), strict=True):
        assert p.grad is not None
        assert mine is not None
        assert torch.allclose(mine, p.grad, atol=1e-6)


def test_a_loss_with_nothing_scored_is_zero() -> None:
    spreading, nothing = Spreading(ranks=ALONE), torch.tensor(0)
    assert spreading.reduce(torch.tensor(0.0), nothing) == 0


def test_half_a_row_before_is_what_is_asked() -> None:
    batch = say_again(Configuration(tokens=6, rows=3), torch.Generator().manual_seed(0))
    assert torch.equal(batch.targets[:, 3:], batch.tokens[:, :3])
    assert (batch.targets[:, :3] == UNSCORED).all()


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="way: expected 'gather' or 'ulysses', got 'ring'"):
        Spreading(way="ring")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fsdp: expected ranks started by torchrun"):
        Spreading(fsdp=True, ranks=ALONE).prepare(FIRE.model(device=CPU))


def call(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def test_one_process_checks_trains_and_tells() -> None:
    code, output = call("--tokens", "8", "--steps", "2", "--check", "--encoding", "alibi")
    assert code == 0
    first, checked, *steps = output.splitlines()
    assert first == "alibi: 8 tokens over 1 rank, zig-zag, gather"
    assert checked == "beside one process, in float64: loss 0.0e+00, gradients 0.0e+00"
    assert all(re.fullmatch(r"step \d  loss \d\.\d{4}  \d+ tokens/s", line) for line in steps)
    assert len(steps) == 2


def test_bad_sizes_are_told_in_one_line() -> None:
    code, output = call("--tokens", "7")
    assert code == 2
    assert output.splitlines()[-1].startswith("error: tokens: expected a multiple of 2 for a zig-zag split over 1")


@pytest.mark.slow
def test_torchrun_starts_two_ranks_and_one_of_them_tells() -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    options = ["--tokens", "32", "--steps", "1", "--check", "--way", "ulysses", "--encoding", "t5"]
    done = subprocess.run(
        [*launch, "-m", "orderproof.lab.long_context", *options],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]
    assert lines[0] == "t5: 32 tokens over 2 ranks, zig-zag, ulysses"
    assert lines[1].startswith("beside one process, in float64: loss ")
    assert [line.split()[:2] for line in lines[2:]] == [["step", "0"]]
