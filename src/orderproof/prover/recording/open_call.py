"""A call with open sizes, whose branches may depend on inputs that are the same in both runs.

A model may ask about its mask, `if mask.all():`. The mask is the same in both runs of a law, so both take the same
branch. Which one is decided here, answer by answer: the recording that results is that of the inputs for which the
answers are true, and a recording for every sequence of answers covers all inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch.fx import Node

from orderproof.prover.recording.open_sizes import OpenSizes


@dataclass
class OpenCall:
    """The open sizes of a call, the answers it gets, and what it asked.

    Attributes:
        sizes: The open sizes.
        answers: The answers to the first questions; each further one is answered with False.
        questions: For each question the node of the tensor that was asked, its answer, and the line of the model.

    """

    sizes: OpenSizes
    answers: Sequence[bool] = ()
    questions: list[tuple[Node, bool, str]] = field(default_factory=list)

    def ask(self, node: Node, line: str) -> bool:
        """The answer to `if tensor:` of a boolean tensor without dimensions."""
        place = len(self.questions)
        answer = self.answers[place] if place < len(self.answers) else False
        self.questions.append((node, answer, line))
        return answer

    def next_answers(self) -> list[bool] | None:
        """The answers of the next call, in depth-first order; None if every sequence has been taken."""
        taken = [answer for _, answer, _ in self.questions]
        while taken and taken[-1]:
            taken.pop()
        return [*taken[:-1], True] if taken else None
