"""Branches on data: an eager call says which one given inputs take.

`if not padding_mask.any():` reads a value that depends on tokens, so no recording shows both branches. The branch that
given inputs take can be recorded: the graph is then that of all inputs that take it. What is proved of it says nothing
about the others, so that the verdict is undecided, with that condition as its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

MAX_BRANCHES = 8  # a model that asks more often computes with numbers that it reads


@dataclass
class Branches:
    """The answers to the questions of a call, and what it asked.

    Attributes:
        answers: The answers to `if tensor:` of a boolean tensor, in the order of the call, those about constants too.
        taken: The line of each question that is not about a constant, and its answer.

    """

    answers: Sequence[bool]
    taken: list[tuple[str, bool]] = field(default_factory=list)
    _asked: int = 0

    def next(self) -> bool | None:
        """The answer to the next question; None if there is none."""
        self._asked += 1
        return self.answers[self._asked - 1] if self._asked <= len(self.answers) else None

    @property
    def condition(self) -> str:
        """The condition on inputs, in words; empty if the call asks about constants only."""
        found = dict.fromkeys(f"the branch on data at {line.removeprefix(', ')} is {a}" for line, a in self.taken)
        return f"for inputs for which, in both runs, {' and '.join(found)}" if found else ""


def is_question(name: str, operands: Sequence[Tensor]) -> bool:
    """True if an operator asks for the value of one boolean."""
    named = name in ("item", "_local_scalar_dense", "is_nonzero")
    return named and len(operands) == 1 and operands[0].dtype is torch.bool
