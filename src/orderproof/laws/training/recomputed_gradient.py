"""OP707 recomputed_gradient: activation checkpointing changes no gradient.

    d loss / d w   with activations that are computed again   =   d loss / d w   with activations that are kept

for every parameter w, in training mode and from the same random numbers. A checkpointed block runs twice: it must find
the same positions, the same masks and the same dropout. The gradients are computed with checkpointing as the loss uses
it, and again with checkpointed functions that are called as any other.
Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174; broken by state that a
model changes too early, by random numbers that are not kept, and by blocks whose inputs need no gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from orderproof.errors import SubjectError, UnsupportedCallError
from orderproof.laws.training.recomputation import without_recomputation
from orderproof.laws.training.training_law import Blame, TermComparison, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

LEAST = 1e-3  # of the largest gradient: the scale of a parameter whose own gradients are smaller
LOST = (
    "Give a checkpointed block an input that needs a gradient, or use_reentrant=False: its parameters get no gradient."
)

Gradients = Mapping[str, Tensor | None]


class RecomputedGradient(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        return None if _checkpoints(step) else "the loss uses no activation checkpointing in training mode"

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        with without_recomputation():
            kept = step.gradients(step.batch)
            where = torch.zeros_like(step.batch.real)
            where[:, 0] = step.batch.real[:, 0]
            other = step.gradients(step.batch.with_other_tokens(where))
        control = max(_differences(kept, other).values())
        try:
            again = step.gradients(step.batch)
        except SubjectError:
            again = dict.fromkeys(kept)
        lost = [name for name, gradient in kept.items() if gradient is not None and again[name] is None]
        differences = _differences(kept, again)
        worst = max(differences, key=lambda name: differences[name])
        found = f"{lost[0]} gets no gradient" if lost else f"the gradient of {worst} differs"
        yield TermComparison(
            "the gradients with activations that are kept and computed again", differences[worst], control,
            found=f"{found} when activations are computed again", remedy=LOST if lost else "", blame=Blame.RECOMPUTED,
        )  # fmt: skip


def _checkpoints(step: TrainingStep) -> bool:
    """True if the loss checkpoints a function: that of the longest row, or of the batch if it takes no row alone."""
    row, length = int(step.batch.real.sum(1).argmax()), step.batch.tokens.shape[1]
    with without_recomputation() as lines:
        try:
            step.training_loss(step.batch.part(row, 0, length))
        except UnsupportedCallError:
            step.training_loss(step.batch)
    return bool(lines)


def _differences(expected: Gradients, actual: Gradients) -> dict[str, float]:
    """The largest difference of each gradient, relative to its size; 1 for a gradient that is not there."""
    sizes = {name: float(g.abs().max()) for name, g in expected.items() if g is not None}
    floor = LEAST * max(sizes.values())
    found = {}
    for name, size in sizes.items():
        own, other = expected[name], actual[name]
        assert own is not None
        found[name] = 1.0 if other is None else float((own - other).abs().max()) / max(size, floor)
    return found


LAW = RecomputedGradient(
    code="OP707",
    name="recomputed_gradient",
    statement="Activation checkpointing changes no gradient.",
    trait="has the same gradients with activation checkpointing",
    expectation={"training step": "holds"},
    may_lack=True,
    assumption="measured in training mode, without autocast",
    remedy="Let a checkpointed block compute the same twice: give it positions and masks as arguments, not in "
    "attributes that the model changes before the backward pass, and keep preserve_rng_state=True.",
)
