"""A call with open sizes, whose branches may depend on inputs that are the same in both runs.

A model may ask about its mask, `if mask.all():`. The mask is the same in both runs of a law, so both take the same
branch. Which one is decided here, answer by answer: the recording that results is that of the inputs for which the
answers are true, and a recording for every sequence of answers covers all inputs. An answer that follows from the graph
so far is not asked for: the other branch is not recorded beyond the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch.fx import Node

from orderproof.recording.open_sizes import OpenSizes


@dataclass
class OpenCall:
    """The open sizes of a call, the answers it gets, and what it asked.

    Attributes:
        sizes: The open sizes.
        answers: The answers to the first questions; each further one is answered with False.
        only_answer: The only possible answer to a question after those before it; None if both may be possible.
        questions: For each question the node of the tensor that was asked, its answer, and the line of the model.
        decided: The places of the questions with only one possible answer.

    """

    sizes: OpenSizes
    answers: Sequence[bool] = ()
    only_answer: Callable[[Node, str], bool | None] = lambda _node, _line: None
    questions: list[tuple[Node, bool, str]] = field(default_factory=list)
    decided: set[int] = field(default_factory=set)

    def ask(self, node: Node, line: str) -> bool:
        """The answer to `if tensor:` of a boolean tensor without dimensions."""
        place = len(self.questions)
        answer = self.answers[place] if place < len(self.answers) else False
        if (only := self.only_answer(node, line)) is not None:
            self.decided.add(place)
            answer = only
        self.questions.append((node, answer, line))
        return answer

    def next_answers(self) -> list[bool] | None:
        """The answers of the next call, in depth-first order; None if every sequence has been taken."""
        taken = [answer for _, answer, _ in self.questions]
        while taken and (taken[-1] or len(taken) - 1 in self.decided):
            taken.pop()
        return [*taken[:-1], True] if taken else None
