"""Training of several runs together: one model, a batch of weights, one for each seed and learning rate.

    w[i] <- AdamW(w[i], gradient of the mean cross-entropy of run i)        for all runs i at once

Small models spend most of a step in calls of operators and not in arithmetic. `torch.vmap` turns the operators of one
model into operators of all models, so that a batch costs less than its runs one by one. The runs differ only in seed,
learning rate and in what happens after training; the data of a step, the initial weights and the formulas are those of
`trainer.train`, and every run is clipped, stopped and tested on its own. The sums of an operator may be rounded in
another order than for a single run: the weights agree up to rounding, not bit for bit.
A batch keeps no checkpoints; after an interruption its unfinished runs start again.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

from orderproof.blocks.attention import SelfAttention
from orderproof.lab.model import build_model
from orderproof.lab.question import UNSCORED, Batch
from orderproof.lab.recorded_gradients import RECORD_AT, RecordedFunction
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.trainer import (
    check_finite_loss,
    deterministic,
    is_solved,
    learning_rate,
    test_run,
    training_batch,
    validation_score,
)
from orderproof.positions import without_value_checks

if TYPE_CHECKING:
    from jaxtyping import Float


def train_together(runs: Sequence[RunConfig]) -> list[RunResult]:
    """Train and test runs that differ only in seed, learning rate and `stretch`. Raises `UsageError` on divergence."""
    with deterministic():
        trained = distinct_weights(runs)
        keys = [_weights_key(run) for run in trained]
        batch = WeightBatch(trained)
        batch.train()
        results = []
        for run in runs:
            model = build_model(run)
            k = keys.index(_weights_key(run))
            model.load_state_dict(batch.weights_of(k))
            results.append(test_run(run, model, batch.curves[k], batch.seconds / len(trained)))
        return results


def distinct_weights(runs: Sequence[RunConfig]) -> list[RunConfig]:
    """One of the runs for each set of weights: those that differ only in `stretch` share theirs."""
    return list({_weights_key(run): run for run in runs}.values())


def _weights_key(run: RunConfig) -> tuple[int, float]:
    return run.seed, run.learning_rate


class WeightBatch:
    """The weights of several runs of one model, in one matrix. For ``record_at`` see `RecordedFunction`."""

    def __init__(self, runs: Sequence[RunConfig], *, record_at: int = RECORD_AT) -> None:
        self.runs = list(runs)
        models = [build_model(run) for run in runs]
        self.model = models[0]
        for module in self.model.modules():
            if isinstance(module, SelfAttention):
                module.backend = "eager"  # fused attention has no batching rule: vmap would call it once per run
        self.shapes = {name: p.shape for name, p in self.model.named_parameters()}
        self.buffers = dict(self.model.named_buffers())
        self.weights = torch.stack([nn.utils.parameters_to_vector(model.parameters()).detach() for model in models])
        self.rows = [nn.Parameter(row) for row in self.weights]  # views: an update of a row changes the matrix
        self.optimiser = make_row_optimiser(self.runs, self.rows)
        self.active = list(range(len(self.runs)))
        """The runs that are still trained."""
        self.computed = list(self.active)
        """The runs whose gradients are computed: all that were active when at most half of the previous ones were left.

        A gradient too many costs less than a recording for one run fewer.
        """
        self.measured = copy.deepcopy(self.model)
        """A model for the weights of one run at a time."""
        self.curves: list[list[dict[str, float]]] = [[] for _ in runs]
        self.seconds = 0.0
        self._gradients = RecordedFunction(vmap(grad_and_value(self._loss)), record_at=record_at)

    def weights_of(self, k: int) -> dict[str, Tensor]:
        """The weights of a run by their names, and the buffers."""
        views = {name: x[0] for name, x in self._by_name(self.weights[k : k + 1]).items()}
        return {**views, **{name: x for name, x in self.buffers.items() if name in self.model.state_dict()}}

    def train(self) -> None:
        """Train every run to its last step."""
        start = time.perf_counter()
        run = self.runs[0]
        for number in range(1, run.steps + 1):
            losses = self.step(number)
            if number % run.measure_every == 0 or number == run.steps:
                self.measure(number, losses)
            if not self.active:
                break
        self.seconds = time.perf_counter() - start

    def step(self, number: int) -> Float[Tensor, " run"]:
        """Update the weights of the active runs; the losses of `computed` before it [nats]. The first step is 1."""
        if 2 * len(self.active) <= len(self.computed):
            self.computed = list(self.active)
        weights = self.weights if len(self.computed) == len(self.runs) else self.weights[self.computed]
        with without_value_checks():
            losses: Tensor
            by_name, losses = self._gradients(self._by_name(weights), *self._batches(number))
        gradient = self._clip(torch.cat([by_name[name].reshape(len(weights), -1) for name in self.shapes], dim=1))
        for row in self.rows:
            row.grad = None  # without a gradient, the optimiser leaves the weights
        for k, own in zip(self.computed, gradient, strict=True):
            self.rows[k].grad = own if k in self.active else None
            self.optimiser.param_groups[k]["lr"] = learning_rate(self.runs[k], number)
        self.optimiser.step()
        return losses

    def measure(self, number: int, losses: Float[Tensor, " run"]) -> None:
        """Add a point to the learning curve of each active run, and stop those that have solved the task."""
        for k, loss in zip(self.computed, losses, strict=True):
            if k not in self.active:
                continue
            value = check_finite_loss(loss, number)
            self.measured.load_state_dict(self.weights_of(k))
            score = validation_score(self.runs[k], self.measured)
            self.curves[k].append({"step": number, "loss": value, "score": score})
            if is_solved(self.runs[k], self.curves[k]):
                self.active.remove(k)

    def _batches(self, number: int) -> tuple[Tensor, ...]:
        """The tokens, the targets and, if the run has them, the positions of each of the computed runs."""
        by_seed: dict[int, Batch] = {}
        for k in self.computed:
            if (seed := self.runs[k].seed) not in by_seed:
                by_seed[seed] = training_batch(self.runs[k], number)
        batches = [by_seed[self.runs[k].seed] for k in self.computed]
        tensors = [torch.stack([b.tokens for b in batches]), torch.stack([b.targets for b in batches])]
        if batches[0].positions is not None:
            tensors.append(torch.stack([b.positions for b in batches if b.positions is not None]))
        return tuple(tensors)

    def _loss(self, weights: Mapping[str, Tensor], tokens: Tensor, targets: Tensor, *positions: Tensor) -> Tensor:
        scores = functional_call(self.model, ({**weights, **self.buffers},), (tokens, *positions))
        return functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED)

    def _clip(self, gradient: Float[Tensor, "run weight"]) -> Float[Tensor, "run weight"]:
        """The gradient with the norm of each run at most `RunConfig.clip`, as `torch.nn.utils.clip_grad_norm_` does."""
        if (largest := self.runs[0].clip) is None:
            return gradient
        norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        return gradient * torch.clamp(largest / (norm + 1e-6), max=1.0)

    def _by_name(self, weights: Float[Tensor, "run weight"]) -> dict[str, Tensor]:
        """The rows of the matrix as the model's parameters, with the runs as first dimension."""
        parts = torch.split(weights, [shape.numel() for shape in self.shapes.values()], dim=1)
        named = zip(self.shapes.items(), parts, strict=True)
        return {name: part.view(len(weights), *shape) for (name, shape), part in named}


def make_row_optimiser(runs: Sequence[RunConfig], rows: Sequence[nn.Parameter]) -> torch.optim.AdamW:
    """Fused AdamW with a group of parameters, and so a learning rate, for the weights of each run."""
    groups = [{"params": [row], "lr": run.learning_rate} for run, row in zip(runs, rows, strict=True)]
    return torch.optim.AdamW(groups, weight_decay=runs[0].weight_decay, fused=True)
