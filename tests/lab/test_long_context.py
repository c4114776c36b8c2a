"""Training over ranks: the losses and the weights of the lab's own training, with and without FSDP2, by torchrun."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
import typer
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import functional
from typer.testing import CliRunner

from orderproof.blocks.spread import Ranks, Ulysses
from orderproof.errors import UsageError
from orderproof.lab import training
from orderproof.lab.configuration import RunConfig
from orderproof.lab.long_context import BOUND, differences, gradients, main, prepared, save, train
from orderproof.lab.network import build
from orderproof.lab.question import UNSCORED
from orderproof.lab.spreading import Spreading, entire
from orderproof.lab.study import single
from orderproof.laws.measured.ranks import on_ranks

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
ALONE = Ranks(number=0, count=1)
SMALL = ["width=16", "heads=2", "layers=1", "batch=2", "steps=3", "warmup=2", "measure_every=1", "learning_rate=0.01"]


def small(question: str, *settings: str) -> RunConfig:
    return single(question, [*SMALL, *settings])


# fire's parameters have every kind of shape; so small a clip binds at every step
FIRE = small("extrapolate", "encoding=fire", "train_lengths=16,16", "test_lengths=16,", "clip=0.05")
KERPLE = small("odds_first", "encoding=kerple", "causal=false", "train_lengths=8,8", "test_lengths=8,", "clip=null")
ROTARY = small("extrapolate", "train_lengths=16,16", "test_lengths=16,", "clip=0.05")
WAYS = (
    (FIRE, Spreading(ranks=ALONE)),
    (KERPLE, Spreading(way="ulysses", split="contiguous", ranks=ALONE)),
    (FIRE, Spreading(fsdp=True, ranks=ALONE)),
    (KERPLE, Spreading(way="ulysses", fsdp=True, ranks=ALONE)),
    (ROTARY, Spreading(fsdp=True, ranks=ALONE)),  # its encoding has no weights
)


def again(spreading: Spreading) -> Spreading:
    """The same over the ranks that are there now."""
    way = "ulysses" if isinstance(spreading.attention, Ulysses) else "gather"
    return Spreading(way=way, split=spreading.split, fsdp=spreading.fsdp)


def trained(run: RunConfig, spreading: Spreading, *, dtype: torch.dtype = torch.float32) -> tuple[list[float], Tensor]:
    """The losses of all steps, and the weights after the last in one row."""
    losses: list[float] = []
    model = train(run, spreading, device=CPU, dtype=dtype, told=lambda _, loss, __: losses.append(loss))
    return losses, torch.cat([entire(p.detach()).reshape(-1) for p in model.parameters()])


@cache
def over_two() -> list[list[Tensor]]:
    """For each way: how far the first step is from that of one process; then losses, then weights; then the rest."""

    def work(rank: int) -> list[Tensor]:
        made = []
        with torch.enable_grad():
            for run, how in WAYS:
                losses, weights = trained(run, again(how), dtype=torch.float64)
                made += [torch.tensor(differences(run, again(how), device=CPU)), torch.tensor(losses).double(), weights]
            made += [begun_apart(rank), torch.tensor(kept()), torch.tensor(clipped())]
        return made

    return on_ranks(work, 2)


def begun_apart(rank: int) -> Tensor:
    """A weight of each rank, after ranks that drew weights of their own were prepared."""
    model = prepared(RunConfig(question="extrapolate", seed=rank), Spreading(), device=CPU)
    assert model.to_scores is not None
    return model.to_scores.weight.detach().clone()


def kept() -> list[int]:
    """How many numbers this rank keeps with FSDP2, and how many there are, but for the encoding; its parts."""
    model = prepared(FIRE, Spreading(fsdp=True), device=CPU)
    encoding = set(model.encoding.parameters())
    others = [p for p in model.parameters() if p not in encoding]
    own = [p.to_local() if isinstance(p, DTensor) else p for p in others]
    parts = sum(isinstance(p, DTensor) for p in encoding)
    return [sum(p.numel() for p in own), sum(p.numel() for p in others), parts]


def clipped() -> list[float]:
    """How long the gradient is that FSDP2 has in parts, before and after it is clipped; and the share of one rank."""
    lengths = []
    spreading = Spreading(fsdp=True)
    for run in (RunConfig.model_validate({**FIRE.plain(), "clip": None}), FIRE):
        model = prepared(run, spreading, device=CPU, dtype=torch.float64)
        gradients(run, model, spreading, training.batch_of(run, 1))
        found = [p.grad for p in model.parameters() if p.grad is not None]
        lengths.append(length_of([entire(x) for x in found]))
        if run is FIRE:
            lengths.append(length_of([x.to_local() if isinstance(x, DTensor) else x for x in found]))
    return lengths


def length_of(gradient: list[Tensor]) -> float:
    return float(torch.cat([x.reshape(-1) for x in gradient]).norm())


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_a_run_over_two_ranks_is_that_of_one_process(number: int) -> None:
    run, _ = WAYS[number]
    losses, weights = trained(run, Spreading(ranks=ALONE), dtype=torch.float64)
    for made in over_two():
        first, over_ranks, weights_over_ranks = made[3 * number : 3 * number + 3]
        assert first.max() < BOUND
        assert torch.allclose(over_ranks, torch.tensor(losses).double(), rtol=0, atol=1e-6)
        assert torch.allclose(weights_over_ranks, weights, rtol=0, atol=BOUND)
    assert len(set(losses)) == 3


def test_all_ranks_begin_with_the_weights_of_the_first() -> None:
    first, second = (made[-3] for made in over_two())
    drawn = build(RunConfig(question="extrapolate", seed=0)).to_scores
    assert drawn is not None
    assert torch.equal(first, second)
    assert torch.equal(first, drawn.weight)


def test_fsdp_keeps_a_part_of_the_weights_and_all_of_the_encoding() -> None:
    for made in over_two():
        own, everything, of_the_encoding = made[-2].tolist()
        assert own < 0.51 * everything
        assert of_the_encoding == 0


def test_a_gradient_in_parts_is_clipped_by_the_length_of_the_whole() -> None:
    assert FIRE.clip is not None
    for made in over_two():
        before, after, of_one_rank = made[-1].tolist()
        assert before > 2 * FIRE.clip
        assert after == pytest.approx(FIRE.clip, rel=1e-4)  # torch divides by the length and 1e-6
        assert of_one_rank < 0.99 * FIRE.clip


ONE_RANK = (
    small("odds_first", "causal=false", "encoding=fire", "train_lengths=3,8", "test_lengths=8,", "clip=0.05"),
    small("extrapolate", "encoding=t5", "train_lengths=7,7", "test_lengths=7,", "schedule=constant", "seed=3"),
    small("who_did_what", "causal=false", "encoding=learned", "clip=null", "test_lengths=6,"),
)


@pytest.mark.parametrize("run", ONE_RANK, ids=lambda run: run.question.name)
@pytest.mark.parametrize("how", [Spreading(ranks=ALONE), Spreading(way="ulysses", split="contiguous", ranks=ALONE)])
def test_one_rank_trains_what_the_lab_trains_bit_for_bit(run: RunConfig, how: Spreading) -> None:
    losses: list[float] = []
    model = train(run, how, device=CPU, told=lambda _, loss, __: losses.append(loss))
    digest = hashlib.sha256()
    for name, x in sorted(model.state_dict().items()):
        digest.update(name.encode() + x.contiguous().numpy().tobytes())
    of_the_lab = training.train(run)
    assert losses == [point.loss for point in of_the_lab.curve]
    assert len(losses) == 3
    assert digest.hexdigest() == of_the_lab.digest


def test_stopped_short_it_goes_the_first_steps_of_the_whole_run() -> None:
    losses: list[float] = []
    train(FIRE, Spreading(ranks=ALONE), device=CPU, steps=2, told=lambda _, loss, __: losses.append(loss))
    assert losses == trained(FIRE, Spreading(ranks=ALONE))[0][:2]


def test_a_loss_for_a_loop_of_ones_own_is_the_plain_one() -> None:
    run = ONE_RANK[0]
    model, batch = build(run), training.batch_of(run, 1)
    loss = Spreading(ranks=ALONE).loss(model, batch.tokens, batch.targets)
    plain = functional.cross_entropy(model(batch.tokens).mT, batch.targets, ignore_index=UNSCORED)
    assert torch.allclose(loss, plain)


def test_a_loss_with_nothing_scored_is_zero() -> None:
    spreading, nothing = Spreading(ranks=ALONE), torch.tensor(0)
    assert spreading.reduce(torch.tensor(0.0), nothing) == 0


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="way: expected 'gather' or 'ulysses', got 'ring'"):
        Spreading(way="ring")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fsdp: expected ranks started by torchrun"):
        prepared(FIRE, Spreading(fsdp=True, ranks=ALONE), device=CPU)


def test_rows_that_cannot_be_spread_are_refused_before_anything_is_trained() -> None:
    two = Spreading(ranks=Ranks(number=0, count=2))
    with pytest.raises(
        UsageError, match=r"a multiple of 4 tokens for a zig-zag split over 2 ranks, got length 7 with 7"
    ):
        prepared(ONE_RANK[1], two, device=CPU)


def test_a_training_that_comes_apart_is_told() -> None:
    apart = small("extrapolate", "train_lengths=8,8", "test_lengths=8,", "learning_rate=1e30", "warmup=0", "steps=9")
    with pytest.raises(UsageError, match="the loss of step .* give a lower learning_rate"):
        train(apart, Spreading(ranks=ALONE), device=CPU)


def test_saved_weights_are_those_trained_and_say_what_they_are(tmp_path: Path) -> None:
    model = train(FIRE, Spreading(ranks=ALONE), device=CPU)
    save(FIRE, model, tmp_path / "weights.safetensors", ALONE)
    held = load_file(tmp_path / "weights.safetensors")
    assert {name: x.tolist() for name, x in held.items()} == {n: x.tolist() for n, x in model.state_dict().items()}
    with safe_open(tmp_path / "weights.safetensors", framework="pt") as file:
        told = json.loads(file.metadata()["orderproof"])
    assert RunConfig.model_validate(told["config"]) == FIRE
    assert told["run"] == FIRE.id
    save(FIRE, model, tmp_path / "of_another.safetensors", Ranks(number=1, count=2))
    assert [file.name for file in tmp_path.iterdir()] == ["weights.safetensors"]


def call(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def test_one_process_checks_trains_saves_and_tells(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    asked = [*SMALL, "encoding=alibi", "train_lengths=[7,7]", "test_lengths=7,"]
    code, output = call("extrapolate", *asked, "--steps", "2", "--check", "--save", str(file))
    assert code == 0
    first, checked, *steps, last = output.splitlines()
    assert first == f"extrapolate, alibi: run {single('extrapolate', asked).id} over 1 rank, zig-zag, gather"
    assert checked == "beside one process, in float64: loss 0.0e+00, gradients 0.0e+00"
    assert all(re.fullmatch(r"step \d  loss \d\.\d{4}  \d+ tokens/s", line) for line in steps)
    assert len(steps) == 2
    assert last == f"weights: {file}"
    assert file.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["extrapolat"], "error: a run of 'extrapolat': question: expected a question, one of "),
        (["copy", "widht=8"], "error: a run of 'copy': no setting is named 'widht'; did you mean 'width'?"),
        (["copy", "encoding=alibi,rotary"], "error: a run of 'copy': encoding: Input should be a valid string, got"),
        (["copy", "--save", "/nowhere/at/all"], "error: --save: expected a file in a folder that exists, got"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(arguments: list[str], told: str) -> None:
    code, output = call(*arguments)
    assert code == 2
    assert output.count("\n") == 1
    assert output.startswith(told)


@pytest.mark.slow
def test_torchrun_starts_two_ranks_and_one_of_them_tells(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    asked = [*SMALL, "encoding=fire", "train_lengths=[16,16]", "test_lengths=16,"]
    options = ["--steps", "1", "--check", "--way", "ulysses", "--fsdp", "--save", str(tmp_path / "weights")]
    done = subprocess.run(
        [*launch, "-m", "orderproof.lab.long_context", "extrapolate", *asked, *options],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]
    run = single("extrapolate", asked)
    assert lines[0] == f"extrapolate, fire: run {run.id} over 2 ranks, zig-zag, ulysses"
    assert lines[1].startswith("beside one process, in float64: loss ")
    assert [line.split()[:2] for line in lines[2:]] == [["step", "1"], ["weights:", str(tmp_path / "weights")]]
    alone = train(run, Spreading(ranks=ALONE), device=CPU, steps=1).state_dict()
    for name, x in load_file(tmp_path / "weights").items():
        assert torch.allclose(x, alone[name], rtol=0, atol=2 * run.learning_rate)
