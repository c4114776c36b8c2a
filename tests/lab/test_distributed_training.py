"""Training over ranks: the losses and the weights of the lab's own training, with and without FSDP2, by torchrun."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import functional
from typer.testing import CliRunner

from orderproof.blocks.sequence_parallel import RankGroup
from orderproof.blocks.sequence_parallel.local_ranks import run_on_ranks
from orderproof.errors import UsageError
from orderproof.lab import trainer
from orderproof.lab.distributed import DistributedStrategy, full_tensor
from orderproof.lab.distributed_training import (
    MAX_GRADIENT_DIFFERENCE,
    compare_with_one_process,
    compute_gradients,
    main,
    prepare_model,
    save_weights,
    train,
)
from orderproof.lab.model import build_model
from orderproof.lab.question import UNSCORED
from orderproof.lab.run_config import RunConfig
from orderproof.lab.study import parse_run

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
ALONE = RankGroup(rank=0, world_size=1)
SMALL = ["width=16", "heads=2", "layers=1", "batch=2", "steps=3", "warmup=2", "measure_every=1", "learning_rate=0.01"]


def small(question: str, *settings: str) -> RunConfig:
    return parse_run(question, [*SMALL, *settings])


# fire's parameters have every kind of shape; so small a clip binds at every step
FIRE = small("extrapolate", "encoding=fire", "train_lengths=16,16", "test_lengths=16,", "clip=0.05")
KERPLE = small("odds_first", "encoding=kerple", "causal=false", "train_lengths=8,8", "test_lengths=8,", "clip=null")
ROTARY = small("extrapolate", "train_lengths=16,16", "test_lengths=16,", "clip=0.05")
CASES = (
    (FIRE, DistributedStrategy(ranks=ALONE)),
    (KERPLE, DistributedStrategy(method="ulysses", split="contiguous", ranks=ALONE)),
    (FIRE, DistributedStrategy(fsdp=True, ranks=ALONE)),
    (KERPLE, DistributedStrategy(method="ulysses", fsdp=True, ranks=ALONE)),
    (ROTARY, DistributedStrategy(fsdp=True, ranks=ALONE)),  # its encoding has no weights
)


def on_current_ranks(strategy: DistributedStrategy) -> DistributedStrategy:
    """The same strategy over the ranks of the current process group."""
    return DistributedStrategy(method=strategy.method, split=strategy.split, fsdp=strategy.fsdp)


def train_fully(
    run: RunConfig, strategy: DistributedStrategy, *, dtype: torch.dtype = torch.float32
) -> tuple[list[float], Tensor]:
    """The losses of all steps, and the final weights as one vector."""
    losses: list[float] = []
    model = train(run, strategy, device=CPU, dtype=dtype, on_step=lambda _, loss, __: losses.append(loss))
    return losses, torch.cat([full_tensor(p.detach()).reshape(-1) for p in model.parameters()])


@cache
def results_of_two_ranks() -> list[list[Tensor]]:
    """For each case: the difference of the first step from one process, the losses, the weights; then other results.

    The ranks are forked by a new process: forks of a process that had run thousands of tests have crashed.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as new_process:
        return [list(map(torch.from_numpy, arrays)) for arrays in new_process.submit(arrays_of_two_ranks).result()]


def arrays_of_two_ranks() -> list[list[NDArray[Any]]]:
    """The results of two ranks as arrays, which processes exchange by value."""
    torch.set_num_threads(1)

    def work(rank: int) -> list[Tensor]:
        results = []
        with torch.enable_grad():
            for run, strategy in CASES:
                losses, weights = train_fully(run, on_current_ranks(strategy), dtype=torch.float64)
                results += [
                    torch.tensor(compare_with_one_process(run, on_current_ranks(strategy), device=CPU)),
                    torch.tensor(losses).double(),
                    weights,
                ]
            results += [first_weights(rank), torch.tensor(shard_sizes()), torch.tensor(clipped_norms())]
        return results

    return [[x.numpy() for x in results] for results in run_on_ranks(work, 2, limit=120)]


def first_weights(rank: int) -> Tensor:
    """A weight of this rank, after preparing ranks with different initial weights."""
    model = prepare_model(RunConfig(question="extrapolate", seed=rank), DistributedStrategy(), device=CPU)
    assert model.to_scores is not None
    return model.to_scores.weight.detach().clone()


def shard_sizes() -> list[int]:
    """With FSDP2: weights on this rank and in total, without the encoding; sharded weights of the encoding."""
    model = prepare_model(FIRE, DistributedStrategy(fsdp=True), device=CPU)
    encoding = set(model.encoding.parameters())
    others = [p for p in model.parameters() if p not in encoding]
    own = [p.to_local() if isinstance(p, DTensor) else p for p in others]
    parts = sum(isinstance(p, DTensor) for p in encoding)
    return [sum(p.numel() for p in own), sum(p.numel() for p in others), parts]


def clipped_norms() -> list[float]:
    """With FSDP2: the norm of the gradient before and after clipping, and of the shard of one rank."""
    lengths = []
    strategy = DistributedStrategy(fsdp=True)
    for run in (RunConfig.model_validate({**FIRE.to_dict(), "clip": None}), FIRE):
        model = prepare_model(run, strategy, device=CPU, dtype=torch.float64)
        compute_gradients(run, model, trainer.training_batch(run, 1), strategy)
        found = [p.grad for p in model.parameters() if p.grad is not None]
        lengths.append(norm_of([full_tensor(x) for x in found]))
        if run is FIRE:
            lengths.append(norm_of([x.to_local() if isinstance(x, DTensor) else x for x in found]))
    return lengths


def norm_of(gradient: list[Tensor]) -> float:
    return float(torch.cat([x.reshape(-1) for x in gradient]).norm())


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_run_on_two_ranks_agrees_with_one_process(number: int) -> None:
    run, _ = CASES[number]
    losses, weights = train_fully(run, DistributedStrategy(ranks=ALONE), dtype=torch.float64)
    for results in results_of_two_ranks():
        first, over_ranks, weights_over_ranks = results[3 * number : 3 * number + 3]
        assert first.max() < MAX_GRADIENT_DIFFERENCE
        assert torch.allclose(over_ranks, torch.tensor(losses).double(), rtol=0, atol=1e-6)
        assert torch.allclose(weights_over_ranks, weights, rtol=0, atol=MAX_GRADIENT_DIFFERENCE)
    assert len(set(losses)) == 3


def test_all_ranks_start_with_the_weights_of_the_first() -> None:
    first, second = (results[-3] for results in results_of_two_ranks())
    drawn = build_model(RunConfig(question="extrapolate", seed=0)).to_scores
    assert drawn is not None
    assert torch.equal(first, second)
    assert torch.equal(first, drawn.weight)


def test_fsdp_shards_the_weights_and_replicates_the_encoding() -> None:
    for results in results_of_two_ranks():
        own, everything, of_the_encoding = results[-2].tolist()
        assert own < 0.51 * everything
        assert of_the_encoding == 0


def test_a_gradient_in_parts_is_clipped_by_the_norm_of_the_whole() -> None:
    assert FIRE.clip is not None
    for results in results_of_two_ranks():
        before, after, of_one_rank = results[-1].tolist()
        assert before > 2 * FIRE.clip
        assert after == pytest.approx(FIRE.clip, rel=1e-4)  # torch divides by the length and 1e-6
        assert of_one_rank < 0.99 * FIRE.clip


ONE_RANK = (
    small("odds_first", "causal=false", "encoding=fire", "train_lengths=3,8", "test_lengths=8,", "clip=0.05"),
    small("extrapolate", "encoding=t5", "train_lengths=7,7", "test_lengths=7,", "schedule=constant", "seed=3"),
    small("who_did_what", "causal=false", "encoding=learned", "clip=null", "test_lengths=6,"),
)


@pytest.mark.parametrize("run", ONE_RANK, ids=lambda run: run.question.name)
@pytest.mark.parametrize(
    "strategy",
    [DistributedStrategy(ranks=ALONE), DistributedStrategy(method="ulysses", split="contiguous", ranks=ALONE)],
)
def test_one_rank_trains_bit_for_bit_like_the_lab(run: RunConfig, strategy: DistributedStrategy) -> None:
    losses: list[float] = []
    model = train(run, strategy, device=CPU, on_step=lambda _, loss, __: losses.append(loss))
    digest = hashlib.sha256()
    for name, x in sorted(model.state_dict().items()):
        digest.update(name.encode() + x.contiguous().numpy().tobytes())
    lab_result = trainer.train(run)
    assert losses == [point.loss for point in lab_result.curve]
    assert len(losses) == 3
    assert digest.hexdigest() == lab_result.digest


def test_a_shortened_training_has_the_first_steps_of_the_whole_run() -> None:
    losses: list[float] = []
    train(FIRE, DistributedStrategy(ranks=ALONE), device=CPU, steps=2, on_step=lambda _, loss, __: losses.append(loss))
    assert losses == train_fully(FIRE, DistributedStrategy(ranks=ALONE))[0][:2]


def test_the_loss_for_a_custom_loop_is_the_plain_cross_entropy() -> None:
    run = ONE_RANK[0]
    model, batch = build_model(run), trainer.training_batch(run, 1)
    loss = DistributedStrategy(ranks=ALONE).loss(model, batch.tokens, batch.targets)
    plain = functional.cross_entropy(model(batch.tokens).mT, batch.targets, ignore_index=UNSCORED)
    assert torch.allclose(loss, plain)


def test_a_loss_without_scored_tokens_is_zero() -> None:
    strategy, nothing = DistributedStrategy(ranks=ALONE), torch.tensor(0)
    assert strategy.mean_over_ranks(torch.tensor(0.0), nothing) == 0


def test_invalid_strategies_are_refused() -> None:
    with pytest.raises(UsageError, match="method: expected 'gather' or 'ulysses', got 'ring'"):
        DistributedStrategy(method="ring")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fsdp: expected ranks started by torchrun"):
        prepare_model(FIRE, DistributedStrategy(fsdp=True, ranks=ALONE), device=CPU)


def test_rows_that_cannot_be_split_are_refused_before_training() -> None:
    two = DistributedStrategy(ranks=RankGroup(rank=0, world_size=2))
    with pytest.raises(
        UsageError, match=r"a multiple of 4 tokens for a zig-zag split over 2 ranks, got length 7 with 7"
    ):
        prepare_model(ONE_RANK[1], two, device=CPU)


def test_divergence_is_an_error() -> None:
    diverging = small(
        "extrapolate", "train_lengths=8,8", "test_lengths=8,", "learning_rate=1e30", "warmup=0", "steps=9"
    )
    with pytest.raises(UsageError, match="training diverged: the loss of step .* give a lower learning_rate"):
        train(diverging, DistributedStrategy(ranks=ALONE), device=CPU)


def test_saved_weights_are_the_trained_ones_with_their_configuration(tmp_path: Path) -> None:
    model = train(FIRE, DistributedStrategy(ranks=ALONE), device=CPU)
    save_weights(FIRE, model, tmp_path / "weights.safetensors", ALONE)
    held = load_file(tmp_path / "weights.safetensors")
    assert {name: x.tolist() for name, x in held.items()} == {n: x.tolist() for n, x in model.state_dict().items()}
    with safe_open(tmp_path / "weights.safetensors", framework="pt") as file:
        metadata = json.loads(file.metadata()["orderproof"])
    assert RunConfig.model_validate(metadata["config"]) == FIRE
    assert metadata["run"] == FIRE.id
    save_weights(FIRE, model, tmp_path / "of_another.safetensors", RankGroup(rank=1, world_size=2))
    assert [file.name for file in tmp_path.iterdir()] == ["weights.safetensors"]


def run_main(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def test_one_process_checks_trains_and_saves(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    settings = [*SMALL, "encoding=alibi", "train_lengths=[7,7]", "test_lengths=7,"]
    code, output = run_main("extrapolate", *settings, "--steps", "2", "--check", "--save", str(file))
    assert code == 0
    first, checked, *steps, last = output.splitlines()
    assert first == f"extrapolate, alibi: run {parse_run('extrapolate', settings).id} over 1 rank, zig-zag, gather"
    assert checked == "difference from one process, in float64: loss 0.0e+00, gradients 0.0e+00"
    assert all(re.fullmatch(r"step \d  loss \d\.\d{4}  \d+ tokens/s", line) for line in steps)
    assert len(steps) == 2
    assert last == f"weights: {file}"
    assert file.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["extrapolat"], "error: a run of 'extrapolat': question: expected a question; got 'extrapolat'"),
        (["copy", "widht=8"], "error: a run of 'copy': no setting is named 'widht'; did you mean 'width'?"),
        (["copy", "encoding=alibi,rotary"], "error: a run of 'copy': encoding: Input should be a valid string, got"),
        (["copy", "--save", "/nowhere/at/all"], "error: --save: expected a file in a folder that exists, got"),
    ],
)
def test_invalid_usage_is_one_line(arguments: list[str], message: str) -> None:
    code, output = run_main(*arguments)
    assert code == 2
    assert output.count("\n") == 1
    assert output.startswith(message)


@pytest.mark.slow
def test_torchrun_starts_two_ranks_and_the_first_prints(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    settings = [*SMALL, "encoding=fire", "train_lengths=[16,16]", "test_lengths=16,"]
    options = ["--steps", "1", "--check", "--method", "ulysses", "--fsdp", "--save", str(tmp_path / "weights")]
    done = subprocess.run(
        [*launch, "-m", "orderproof.lab.distributed_training", "extrapolate", *settings, *options],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]
    run = parse_run("extrapolate", settings)
    assert lines[0] == f"extrapolate, fire: run {run.id} over 2 ranks, zig-zag, ulysses"
    assert lines[1].startswith("difference from one process, in float64: loss ")
    assert [line.split()[:2] for line in lines[2:]] == [["step", "1"], ["weights:", str(tmp_path / "weights")]]
    alone = train(run, DistributedStrategy(ranks=ALONE), device=CPU, steps=1).state_dict()
    for name, x in load_file(tmp_path / "weights").items():
        assert torch.allclose(x, alone[name], rtol=0, atol=2 * run.learning_rate)
