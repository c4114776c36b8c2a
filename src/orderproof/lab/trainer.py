"""Training: a run's result is a function of its configuration alone.

    step t:   batch = draw(length(seed, t), generator(seed, t));   w <- AdamW(w, gradient of the mean cross-entropy)

The seed determines the initial weights, the seed and the step determine each batch, and torch uses deterministic
algorithms on one thread. A run that is killed and resumed from its checkpoint therefore gives the same bits as an
uninterrupted one. A `TrainingStrategy` decides where the loss and the gradient of a step are computed: in this process
(`SingleProcess`), or on several ranks (`distributed.DistributedStrategy`).
Source of the optimiser: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", arXiv:1711.05101.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.blocks import Transformer
from orderproof.errors import UsageError
from orderproof.lab import checkpoints
from orderproof.lab.code_version import code_version
from orderproof.lab.evaluation import evaluate
from orderproof.lab.model import build_model
from orderproof.lab.question import UNSCORED, Batch
from orderproof.lab.result import LengthScore, RunResult, TrainingPoint
from orderproof.lab.rope_extension import extend_rope
from orderproof.lab.run_config import RunConfig
from orderproof.positions import randomized

if TYPE_CHECKING:
    from jaxtyping import Float, Int

TRAIN, TEST, VALIDATION, LENGTHS = 1, 2, 3, 4  # separate random streams
CURVE_ROWS = 128  # rows evaluated at each point of the learning curve


class TrainingStrategy(Protocol):
    """Computes the loss and the gradient of one step, in one process or on several ranks."""

    def loss(
        self,
        model: Transformer,
        tokens: Int[Tensor, "row token"],
        targets: Int[Tensor, "row token"],
        positions: Int[Tensor, "row token"] | None = None,
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy [nats] over the scored tokens of the whole batch."""

    def reduce_gradients(self, model: Transformer) -> None:
        """Combine the gradients of all ranks, after the backward pass."""

    def clip_gradients(self, model: Transformer, max_norm: float) -> None:
        """Scale the whole gradient so that its norm is at most ``max_norm``."""


class SingleProcess:
    """The strategy of one process that holds the whole batch and all weights."""

    def loss(
        self,
        model: Transformer,
        tokens: Int[Tensor, "row token"],
        targets: Int[Tensor, "row token"],
        positions: Int[Tensor, "row token"] | None = None,
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy [nats] over the scored tokens."""
        scores = model(tokens, positions).flatten(0, 1)
        return functional.cross_entropy(scores, targets.flatten(), ignore_index=UNSCORED)

    def reduce_gradients(self, model: Transformer) -> None:
        """Do nothing: the gradient is complete."""

    def clip_gradients(self, model: Transformer, max_norm: float) -> None:
        """Clip the norm over all parameters."""
        nn.utils.clip_grad_norm_(model.parameters(), max_norm, foreach=True)


SINGLE_PROCESS = SingleProcess()


@dataclass(frozen=True, kw_only=True)
class TrainingStep:
    """A finished step; the first is number 1."""

    number: int
    loss: Tensor
    """The loss before the update [nats], still on the device."""
    tokens: int
    """Tokens in the whole batch."""
    seconds: float


def train(
    run: RunConfig, checkpoint_folder: Path | None = None, *, on_step: Callable[[int], None] | None = None
) -> RunResult:
    """Train and test a run. With a folder, resume from its checkpoint and save one every ``run.keep_every`` steps.

    ``on_step`` is called with the number of each finished step. Raises `UsageError` where training diverges,
    `CheckpointError` for a checkpoint that cannot be used, and `StoreError` where none can be written.
    """
    with deterministic():
        model = build_model(run)
        optimiser = make_optimiser(run, model)
        code = code_version(run.question.dataset_version)
        file = None if checkpoint_folder is None else checkpoint_folder / f"{run.id}.safetensors"
        progress = checkpoints.TrainingProgress(step=0, curve=[], seconds=0.0)
        if file is not None and file.exists():
            progress = checkpoints.load_checkpoint(file, model, optimiser, run=run.id, code=code)
        start = time.perf_counter() - progress.seconds
        curve = list(progress.curve)
        for step in train_steps(run, model, optimiser, first=progress.step + 1, last=run.steps):
            number, is_last = step.number, step.number == run.steps
            if number % run.measure_every == 0 or is_last:
                loss = check_finite_loss(step.loss, number)
                curve.append({"step": number, "loss": loss, "score": validation_score(run, model)})
                is_last = is_last or is_solved(run, curve)
            if file is not None and (number % run.keep_every == 0 or is_last):
                seconds = time.perf_counter() - start
                progress = checkpoints.TrainingProgress(step=number, curve=curve, seconds=seconds)
                checkpoints.save_checkpoint(file, model, optimiser, progress, run=run.id, code=code)
            if on_step is not None:
                on_step(number)
            if is_last:
                break
        return test_run(run, model, curve, time.perf_counter() - start)


def train_steps(
    run: RunConfig,
    model: Transformer,
    optimiser: torch.optim.Optimizer,
    strategy: TrainingStrategy = SINGLE_PROCESS,
    *,
    first: int = 1,
    last: int,
) -> Iterator[TrainingStep]:
    """Train from step ``first`` to step ``last``, both included, and yield each step when it is done."""
    for number in range(first, last + 1):
        start = time.perf_counter()
        batch = training_batch(run, number)
        loss = training_step(run, model, optimiser, number, batch, strategy)
        yield TrainingStep(number=number, loss=loss, tokens=batch.tokens.numel(), seconds=time.perf_counter() - start)


def training_step(
    run: RunConfig,
    model: Transformer,
    optimiser: torch.optim.Optimizer,
    number: int,
    batch: Batch,
    strategy: TrainingStrategy = SINGLE_PROCESS,
) -> Float[Tensor, ""]:
    """Update the weights once and return the loss before the update [nats]. The first step is number 1."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(run, number)
    loss = compute_gradients(run, model, batch, strategy)
    optimiser.step()
    return loss


def compute_gradients(
    run: RunConfig, model: Transformer, batch: Batch, strategy: TrainingStrategy = SINGLE_PROCESS
) -> Float[Tensor, ""]:
    """Store the clipped gradient of a batch in the parameters, and return the loss [nats]."""
    device = next(model.parameters()).device
    model.zero_grad(set_to_none=True)
    positions = None if batch.positions is None else batch.positions.to(device)
    loss = strategy.loss(model, batch.tokens.to(device), batch.targets.to(device), positions)
    torch.autograd.backward(loss)
    strategy.reduce_gradients(model)
    if run.clip is not None:
        strategy.clip_gradients(model, run.clip)
    return loss.detach()


def training_batch(run: RunConfig, number: int) -> Batch:
    """The rows of a step. All have one length, drawn uniformly from the trained lengths, the same for every seed."""
    generator = _generator(run.seed, TRAIN, number)
    return _with_positions(run, run.question.sample(_length(run, number), run.batch, generator), generator)


def _with_positions(run: RunConfig, batch: Batch, generator: torch.Generator) -> Batch:
    """The batch with random positions if the run has them."""
    if run.random_positions is None:
        return batch
    rows, tokens = batch.tokens.shape
    positions = randomized(tokens, run.random_positions, batch=rows, generator=generator)
    return dataclasses.replace(batch, positions=positions)


def learning_rate(run: RunConfig, number: int) -> float:
    """Linear warmup from 0, then constant or cosine decay to 0."""
    if number <= run.warmup:
        return run.learning_rate * number / run.warmup
    if run.schedule == "constant":
        return run.learning_rate
    share = (number - run.warmup) / max(1, run.steps - run.warmup)
    return run.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


def make_optimiser(run: RunConfig, model: nn.Module) -> torch.optim.AdamW:
    """Fused AdamW over all trainable parameters."""
    return torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=run.learning_rate, weight_decay=run.weight_decay, fused=True,
    )  # fmt: skip


def check_finite_loss(loss: Tensor, number: int) -> float:
    """The loss of a step as a number. Raises `UsageError` where it is not finite."""
    value = loss.item()
    if not math.isfinite(value):
        raise UsageError(f"training diverged: the loss of step {number} is {value}; give a lower learning_rate")
    return value


def validation_score(run: RunConfig, model: Transformer) -> float:
    """The score at the longest trained length, on the same few rows every time, which are not those of the test."""
    length, generator = run.effective_train_lengths[1], _generator(0, VALIDATION)
    batch = _with_positions(run, run.question.sample(length, CURVE_ROWS, generator), generator)
    return evaluate(model, run.question, batch).value


def is_solved(run: RunConfig, curve: Sequence[Mapping[str, float]]) -> bool:
    """True if the last two measurements reach `RunConfig.solved`."""
    last = [point["score"] for point in curve[-2:]]
    return run.solved is not None and len(last) == 2 and min(last) >= run.solved


def test_run(run: RunConfig, model: Transformer, curve: list[dict[str, float]], seconds: float) -> RunResult:
    """The result of a trained model. Each seed has test rows of its own. Raises `UsageError` for infinite weights."""
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        raise UsageError(
            f"training diverged: the weights after step {run.steps} are not finite; give a lower learning_rate"
        )
    low, high = run.effective_train_lengths
    digest = hashlib.sha256()
    for name, x in sorted(model.state_dict().items()):
        digest.update(name.encode() + x.contiguous().numpy().tobytes())
    # In float64: in float32 rounding decides near ties, and a permutation-invariant model could answer two orders of
    # one bag differently.
    model.double()
    lengths = []
    for length in run.effective_test_lengths:
        extend_rope(model, run.stretch, tokens=run.question.row_length(length), trained=run.question.row_length(high))
        generator = _generator(run.seed, TEST)
        batch = run.question.test_batch(length, run.test_rows, generator)
        batch = _with_positions(run, batch, generator)
        scored = evaluate(model, run.question, batch)
        ceiling = run.question.ceiling(length)
        lengths.append(
            LengthScore(
                length=length, trained=low <= length <= high, score=scored.value, right=scored.right,
                scored=scored.scored, ceiling=None if ceiling is None else float(ceiling.value),
            )
        )  # fmt: skip
    steps = (_length(run, number) for number in range(1, int(curve[-1]["step"]) + 1))
    tokens = run.batch * sum(map(run.question.row_length, steps))
    return RunResult(
        id=run.id, config=run.to_dict(), edition=run.question.dataset_version,
        curve=[TrainingPoint.model_validate(point) for point in curve], lengths=lengths,
        parameters=sum(p.numel() for p in model.parameters()), digest=digest.hexdigest(), seconds=seconds,
        tokens_per_second=tokens / seconds,
    )  # fmt: skip


def _length(run: RunConfig, number: int) -> int:
    """The row length of a step."""
    low, high = run.effective_train_lengths
    return int(torch.randint(low, high + 1, (1,), generator=_generator(LENGTHS, number)))


def _generator(*numbers: int) -> torch.Generator:
    """A generator seeded by a hash of all the numbers."""
    text = ",".join(map(str, numbers)).encode()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1)


@contextmanager
def deterministic() -> Iterator[None]:
    """Use one thread and deterministic algorithms within the context; restore the settings at its end.

    With deterministic algorithms, torch by default also fills new memory with NaN, in case an operator reads memory
    that was not written. No operator here does, and the filling took up to a tenth of a step.
    """
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic  # its attributes have no annotations
    fill = settings.fill_uninitialized_memory
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)
        settings.fill_uninitialized_memory = fill
