"""The base class of laws of training steps: the terms of a loss on a batch and on a changed batch, and a control.

A training step is a model, a batch and a loss. Its terms are seen at the logits: the gradient of the loss there is zero
where no label is scored, and for a cross-entropy it says with which weight a label counts. So a law needs no source of
the loss, and no loss without reduction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from torch import Tensor

from orderproof.laws.law import Law
from orderproof.laws.training.training_batch import TrainingBatch
from orderproof.laws.training.training_step import TrainingStep


class Blame(Enum):
    """The line that a difference is traced to: see `orderproof.training.loss_line`."""

    OPERATOR = "the first operator that differs in a token"
    READ_LABELS = "the first operator that differs with a label"
    TERMS = "the first operator with a fraction that differs with a label"
    MODEL_CALL = "the call of the model, which lacks an input of the batch"
    RECOMPUTED = "the first operator that differs when it runs again for the gradient"
    SHARD = "the first operator of a rank that differs in a token from the call on the whole batch"
    COLLECTIVE = "the first operator of a rank that exchanges values with others"
    REDUCTION = "the last operator of the loss"


class TokenOfBatch(NamedTuple):
    """A token in the call of the loss for a batch."""

    batch: TrainingBatch
    row: int
    token: int


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
    calls: tuple[TokenOfBatch, TokenOfBatch] | None = None  # two calls of the loss that show the difference
    blame: Blame = Blame.OPERATOR
    made: Tensor | None = None  # a wrong tensor of the batch: the line that made it, if it was seen


@dataclass(frozen=True, kw_only=True)
class TrainingLaw(Law):
    """A law that is decided by calling the loss of a training step."""

    remedy: str
    assumption: str = "measured in evaluation mode, without dropout and autocast"
    proved_as: str = ""  # the law that the terms of the loss obey as outputs of the tokens, if it can be proved
    may_lack: bool = False  # a step may do without what the law is about: then nothing is expected of it
    remedies: Mapping[str, str] = field(default_factory=dict)  # by the way in which the operator mixes tokens

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        """Why the law has no meaning for a training step; None if it has one."""
        del step
        return None

    @abstractmethod
    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        """The comparisons, with the step in one precision. Raises `UnsupportedCallError` where none can be made."""
