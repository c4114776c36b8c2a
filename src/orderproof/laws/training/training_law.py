"""The base class of laws of training steps: the terms of a loss on a batch and on a changed batch, and a control.

A training step is a model, a batch and a loss. Its terms are seen at the logits: the gradient of the loss there is zero
where no label is scored, and for a cross-entropy it says with which weight a label counts. So a law needs no source of
the loss, and no loss without reduction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from orderproof.laws.law import Law
from orderproof.laws.training.training_step import TrainingStep


@dataclass(frozen=True)
class TermComparison:
    """One comparison: how far two values differ that must be equal, and how far a change that must matter moves them.

    Both numbers are relative to the largest value that is compared.
    """

    description: str
    difference: float
    control: float
    found: str = ""  # of a difference: the row, the token, the output
    remedy: str = ""  # of a difference; without one, the remedy of the law


@dataclass(frozen=True, kw_only=True)
class TrainingLaw(Law):
    """A law that is decided by calling the loss of a training step."""

    remedy: str

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        """Why the law has no meaning for a training step; None if it has one."""
        del step
        return None

    @abstractmethod
    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        """The comparisons, with the step in one precision. Raises `UnsupportedCallError` where none can be made."""
