"""The step of a trainer that weighs log-probabilities of labels which it makes itself: DPO, KTO, GRPO and RLOO of TRL.

    gradient of its loss  =  sum over rows r and labels i of  w_{r,i} * gradient of log p(label i of row r)

The weights w are the derivatives of its loss with respect to these log-probabilities. With w held, the sum is a loss of
model, tokens and labels with the gradient that the trainer back-propagates, and the laws of terms are decided for it.
The weights of a row are divided by the largest of them: how a trainer weighs rows is its own affair. Where all are 0,
as for rewards that are equal, each label has the weight 1. What the model gets (tokens, masks, positions, labels) is
seen when the trainer calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training import TrainingBatch
from orderproof.laws.training.training_batch import IGNORED

WEIGHTS = "log_prob_weights"  # in the batch: of the log-probability of each label [row, label]


@dataclass(frozen=True)
class PolicyStep:
    """The batch of a policy, with weights, and what else its model is called with."""

    batch: dict[str, Tensor]
    named: Mapping[str, Any]

    @classmethod
    def of(cls, model: nn.Module, objective: Callable[[], Tensor]) -> PolicyStep:
        """The step in which the loss that `objective` returns calls a model. Raises `UnsupportedCallError`."""
        calls: list[tuple[dict[str, Any], Tensor]] = []

        def note(_model: nn.Module, _given: Any, named: dict[str, Any], output: Any) -> None:
            found = getattr(output, "log_probs", None)
            if isinstance(found, Tensor) and found.requires_grad and isinstance(named.get("labels"), Tensor):
                calls.append((named, found))

        handle = model.register_forward_hook(note, with_kwargs=True)
        try:
            with torch.enable_grad():
                loss = objective()
        finally:
            handle.remove()
        if len(calls) != 1:
            raise UnsupportedCallError(
                f"its loss has {len(calls)} calls of the model with labels that return log-probabilities; expected one"
            )
        ((named, found),) = calls
        (gradient,) = torch.autograd.grad(loss, found, allow_unused=True)
        if gradient is None:
            raise UnsupportedCallError("its loss is not computed from the log-probabilities that the model returns")
        if not bool((gradient != 0).any()):
            gradient = (named["labels"][:, -gradient.shape[1] :] != IGNORED).to(gradient)
        return cls._weighted(named, gradient)

    @classmethod
    def _weighted(cls, named: Mapping[str, Any], gradient: Tensor) -> PolicyStep:
        labels = named["labels"]
        weights = nn.functional.pad(gradient, (labels.shape[1] - gradient.shape[1], 0))
        rows = (weights != 0).any(1)  # the others add nothing to this step
        roles = TrainingBatch.roles_of(named)
        tensors = {name: named[name][rows] for role, name in roles.items() if role != "labels"}
        kept = labels.masked_fill(_left_out(weights), IGNORED)[rows]
        batch = {**tensors, roles["labels"]: kept, WEIGHTS: weights[rows]}
        batch[WEIGHTS] = batch[WEIGHTS] / batch[WEIGHTS].abs().amax(1, keepdim=True)
        return cls(batch, {name: value for name, value in named.items() if name not in roles.values()})

    def loss(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """The sum of the weighted log-probabilities."""
        given = {name: value for name, value in batch.items() if name != WEIGHTS}
        log_probs = model(**given, **self.named).log_probs
        return (batch[WEIGHTS][:, -log_probs.shape[1] :] * log_probs).sum()  # type: ignore[no-any-return]


def _left_out(weights: Tensor) -> Tensor:
    """True between the first and the last weight of a row for what has none: text of tools, tokens that are clipped."""
    counted = weights != 0
    before, after = counted.cumsum(1) > 0, counted.flip(1).cumsum(1).flip(1) > 0
    return before & after & ~counted
