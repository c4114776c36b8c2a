"""One run: a function from its configuration to its result.

    step t:   batch = draw(length(seed, t), generator(seed, t));   w <- AdamW(w, gradient of the mean cross-entropy)

The result depends on nothing else: the weights are drawn by the seed, the batch of a step by the seed and the step, and
torch is asked for deterministic algorithms on one thread. So a run that is killed and continued from its checkpoint
gives, bit for bit, what it would have given undisturbed.
Source of the optimiser: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", arXiv:1711.05101.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from orderproof.blocks import Transformer
from orderproof.errors import UsageError
from orderproof.lab import checkpoints
from orderproof.lab.code_version import code_version
from orderproof.lab.configuration import RunConfig
from orderproof.lab.network import build
from orderproof.lab.question import UNSCORED, Batch
from orderproof.lab.result import LengthScore, Point, RunResult
from orderproof.lab.scoring import score
from orderproof.lab.stretching import stretch

TRAIN, TEST = 1, 2  # streams of random numbers that must not meet
CURVE_ROWS = 128  # of a point of the learning curve

Told = Callable[[int], None]


def train(run: RunConfig, folder: Path | None = None, *, told: Told | None = None) -> RunResult:
    """Train, test and tell. With a folder, go on from the checkpoint there, and leave one every now and then.

    ``told`` is called with the number of each step that is done.
    """
    with deterministic():
        model = build(run)
        optimiser = optimiser_of(run, model)
        code = code_version(run.question.edition)
        file = None if folder is None else folder / f"{run.id}.safetensors"
        progress = checkpoints.Progress(step=0, curve=[], seconds=0.0)
        if file is not None and file.exists():
            progress = checkpoints.restore(file, model, optimiser, run=run.id, code=code)
        began = time.perf_counter() - progress.seconds
        curve = list(progress.curve)
        for number in range(progress.step + 1, run.steps + 1):
            loss = step(run, model, optimiser, number)
            if number % run.measure_every == 0 or number == run.steps:
                curve.append({"step": number, "loss": finite(loss, number), "score": _on_curve(run, model)})
            if file is not None and (number % run.keep_every == 0 or number == run.steps):
                spent = checkpoints.Progress(step=number, curve=curve, seconds=time.perf_counter() - began)
                checkpoints.keep(file, model, optimiser, spent, run=run.id, code=code)
            if told is not None:
                told(number)
        spent_training = time.perf_counter() - began
        return _result(run, model, curve, spent_training)


def step(run: RunConfig, model: Transformer, optimiser: torch.optim.Optimizer, number: int) -> torch.Tensor:
    """One step of training, the first being number 1; gives the loss before it."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(run, number)
    batch = batch_of(run, number)
    optimiser.zero_grad(set_to_none=True)
    loss = functional.cross_entropy(model(batch.tokens).flatten(0, 1), batch.targets.flatten(), ignore_index=UNSCORED)
    loss.backward()  # type: ignore[no-untyped-call]
    if run.clip is not None:
        nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], run.clip, foreach=True)
    optimiser.step()
    return loss.detach()


def batch_of(run: RunConfig, number: int) -> Batch:
    """The rows of a step: all of one length, which is any of the trained ones."""
    generator = _generator(run.seed, TRAIN, number)
    return run.question.draw(_length(run, generator), run.batch, generator)


def learning_rate(run: RunConfig, number: int) -> float:
    """A straight rise from 0, then constant, or half a cosine down to 0."""
    if number <= run.warmup:
        return run.learning_rate * number / run.warmup
    if run.schedule == "constant":
        return run.learning_rate
    share = (number - run.warmup) / max(1, run.steps - run.warmup)
    return run.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


def optimiser_of(run: RunConfig, model: nn.Module) -> torch.optim.AdamW:
    """AdamW over everything that is trained."""
    return torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=run.learning_rate, weight_decay=run.weight_decay, fused=True,
    )  # fmt: skip


def finite(loss: torch.Tensor, number: int) -> float:
    """The loss of a step. Raises `UsageError` where it is no number."""
    value = loss.item()
    if not math.isfinite(value):
        raise UsageError(f"the loss of step {number} is {value}: the training came apart; give a lower learning_rate")
    return value


def _on_curve(run: RunConfig, model: Transformer) -> float:
    """The score at the longest trained length on a few rows, always the same."""
    length = run.trained[1]
    batch = run.question.draw(length, CURVE_ROWS, _generator(0, TEST, length))
    return score(model, run.question, batch).value


def _result(run: RunConfig, model: Transformer, curve: list[dict[str, float]], seconds: float) -> RunResult:
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        raise UsageError(
            f"the weights after step {run.steps} are not finite: the training came apart; give a lower learning_rate"
        )
    low, high = run.trained
    digest = hashlib.sha256()
    for name, x in sorted(model.state_dict().items()):
        digest.update(name.encode() + x.contiguous().numpy().tobytes())
    # In float64, so that a model proved blind answers every order of a bag alike: rounding would decide near ties.
    model.double()
    lengths = []
    for length in run.tested:
        stretch(model, run.stretch, tokens=run.question.tokens(length), trained=run.question.tokens(high))
        batch = run.question.test(length, run.test_rows, _generator(0, TEST, length))
        got = score(model, run.question, batch)
        ceiling = run.question.ceiling(length)
        lengths.append(
            LengthScore(
                length=length, trained=low <= length <= high, score=got.value, right=got.right, scored=got.scored,
                ceiling=None if ceiling is None else float(ceiling.value),
            )
        )  # fmt: skip
    steps = (_length(run, _generator(run.seed, TRAIN, number)) for number in range(1, run.steps + 1))
    tokens = run.batch * sum(map(run.question.tokens, steps))
    return RunResult(
        id=run.id, config=run.plain(), edition=run.question.edition,
        curve=[Point.model_validate(point) for point in curve], lengths=lengths,
        parameters=sum(p.numel() for p in model.parameters()), digest=digest.hexdigest(), seconds=seconds,
        tokens_per_second=tokens / seconds,
    )  # fmt: skip


def _length(run: RunConfig, generator: torch.Generator) -> int:
    """The length of a step's rows: what its generator is asked first."""
    low, high = run.trained
    return int(torch.randint(low, high + 1, (1,), generator=generator))


def _generator(*numbers: int) -> torch.Generator:
    """A generator seeded by all the numbers: streams for different ones do not overlap."""
    text = ",".join(map(str, numbers)).encode()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1)


@contextmanager
def deterministic() -> Iterator[None]:
    """One thread and deterministic algorithms, as long as it lasts."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)
