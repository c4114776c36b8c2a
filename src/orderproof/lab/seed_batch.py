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
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

from orderproof.blocks.attention import SelfAttention
from orderproof.lab.model import build_model
from orderproof.lab.question import UNSCORED, Batch
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

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""The defaults of `torch.optim.AdamW`."""


def train_together(runs: Sequence[RunConfig]) -> list[RunResult]:
    """Train and test runs that differ only in seed, learning rate and `stretch`. Raises `UsageError` on divergence."""
    with deterministic():
        trained = {_weights_key(run): run for run in runs}
        batch = WeightBatch(list(trained.values()))
        batch.train()
        results = []
        for run in runs:
            model = build_model(run)
            k = list(trained).index(_weights_key(run))
            model.load_state_dict(batch.weights_of(k))
            results.append(test_run(run, model, batch.curves[k], batch.seconds / len(trained)))
        return results


def _weights_key(run: RunConfig) -> tuple[int, float]:
    return run.seed, run.learning_rate


@dataclass(kw_only=True)
class _Adam:
    """The moments of AdamW for a matrix of weights, one run a row."""

    first: Float[Tensor, "run weight"]
    second: Float[Tensor, "run weight"]

    def step(
        self, weights: Float[Tensor, "run weight"], gradient: Float[Tensor, "run weight"], rates: Float[Tensor, " run"],
        *, number: int, decay: float,
    ) -> None:  # fmt: skip
        """Update the weights in place; the first step is number 1."""
        rate = rates.unsqueeze(1)
        weights.mul_(1 - rate * decay)
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = self.second.sqrt().div_((1 - BETAS[1] ** number) ** 0.5).add_(EPSILON)
        weights.sub_(rate / (1 - BETAS[0] ** number) * (self.first / size))


class WeightBatch:
    """The weights of several runs of one model, in one matrix."""

    def __init__(self, runs: Sequence[RunConfig]) -> None:
        self.runs = list(runs)
        models = [build_model(run) for run in runs]
        self.model = models[0]
        for module in self.model.modules():
            if isinstance(module, SelfAttention):
                module.backend = "eager"  # fused attention has no batching rule: vmap would call it once per run
        self.shapes = {name: p.shape for name, p in self.model.named_parameters()}
        self.buffers = dict(self.model.named_buffers())
        self.weights = torch.stack([nn.utils.parameters_to_vector(model.parameters()).detach() for model in models])
        self.curves: list[list[dict[str, float]]] = [[] for _ in runs]
        self.seconds = 0.0
        self._gradients = vmap(grad_and_value(self._loss))

    def weights_of(self, k: int) -> dict[str, Tensor]:
        """The weights of a run by their names, and the buffers."""
        views = {name: x[0] for name, x in self._by_name(self.weights[k : k + 1]).items()}
        return {**views, **{name: x for name, x in self.buffers.items() if name in self.model.state_dict()}}

    def train(self) -> None:
        """Train every run to its last step."""
        start = time.perf_counter()
        run = self.runs[0]
        adam = _Adam(first=torch.zeros_like(self.weights), second=torch.zeros_like(self.weights))
        active = list(range(len(self.runs)))
        model = copy.deepcopy(self.model)
        for number in range(1, run.steps + 1):
            batches = self._batches(active, number)
            weights = self.weights[active]
            with without_value_checks():
                by_name, losses = self._gradients(self._by_name(weights), *batches)
            gradient = self._clip(torch.cat([by_name[name].reshape(len(active), -1) for name in self.shapes], dim=1))
            rates = torch.tensor([learning_rate(self.runs[k], number) for k in active])
            moments = _Adam(first=adam.first[active], second=adam.second[active])
            moments.step(weights, gradient, rates, number=number, decay=run.weight_decay)
            self.weights[active], adam.first[active], adam.second[active] = weights, moments.first, moments.second
            if number % run.measure_every == 0 or number == run.steps:
                for k, loss in zip(list(active), losses, strict=True):
                    value = check_finite_loss(loss, number)
                    model.load_state_dict(self.weights_of(k))
                    self.curves[k].append({"step": number, "loss": value, "score": validation_score(run, model)})
                    if is_solved(run, self.curves[k]):
                        active.remove(k)
            if not active:
                break
        self.seconds = time.perf_counter() - start

    def _batches(self, active: Sequence[int], number: int) -> tuple[Tensor, ...]:
        """The tokens, the targets and, if the run has them, the positions of each run at a step."""
        by_seed: dict[int, Batch] = {}
        for k in active:
            if (seed := self.runs[k].seed) not in by_seed:
                by_seed[seed] = training_batch(self.runs[k], number)
        batches = [by_seed[self.runs[k].seed] for k in active]
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
