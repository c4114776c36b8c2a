"""Questions about a string: its letters, then empty tokens, one for each letter of the answer, at which it is read.

    s_1 ... s_n  e ... e          the answer's letters are read at the e, which are all the same token

An encoder that is blind to order sees one and the same at every e, and so says one and the same letter at all of them.
A decoder does not: it sees how many e stand before, and with that where it is in the answer. A question with more than
one e is therefore asked of encoders, as its authors did. A token of the input and an answer may be one number.
Source: Deletang et al. 2023, "Neural Networks and the Chomsky Hierarchy", arXiv:2207.02098, appendix A (the tasks);
Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers", arXiv:2305.16843
(the empty tokens).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from orderproof.lab.choices import ChoiceQuestion
from orderproof.lab.letter_counts import largest_share
from orderproof.lab.question import UNSCORED, Batch, Ceiling

if TYPE_CHECKING:
    from jaxtyping import Int

SOURCE = (
    "Deletang et al. 2023, Neural Networks and the Chomsky Hierarchy, arXiv:2207.02098; asked as in Ruoss et al. 2023, "
    "Randomized Positional Encodings Boost Length Generalization of Transformers, arXiv:2305.16843"
)


class StringQuestion(ChoiceQuestion):
    """A string of letters drawn evenly, and what is to be said of it."""

    source: ClassVar[str] = SOURCE
    train_lengths: ClassVar[tuple[int, int]] = (1, 20)
    test_lengths: ClassVar[tuple[int, ...]] = (10, 20, 40, 60, 80)

    @property
    @abstractmethod
    def alphabet(self) -> int:
        """How many letters there are: the tokens from 0 on, before the empty one."""

    @abstractmethod
    def answer(self, chosen: Int[Tensor, "row choice"]) -> Int[Tensor, "row answer"]:
        """What is to be said at the empty tokens."""

    def string(self, chosen: Int[Tensor, "row choice"]) -> Int[Tensor, "row letter"]:
        """The letters of the row: the choices themselves, unless a question says otherwise."""
        return chosen

    @property
    def vocabulary(self) -> int:
        """The letters and the empty token, or the answers where those are more."""
        return max(self.alphabet + 1, *(answer + 1 for answer in self.answers))

    @property
    def answers(self) -> tuple[int, ...]:
        """The letters, unless a question says otherwise."""
        return tuple(range(self.alphabet))

    def tokens(self, length: int) -> int:
        """The string and its empty tokens."""
        return int(self.build(torch.zeros(1, len(self.ways(length)), dtype=torch.long), length).tokens.shape[1])

    def ways(self, length: int) -> tuple[int, ...]:
        """The letters, each evenly."""
        return (self.alphabet,) * length

    def build(self, chosen: Int[Tensor, "row choice"], length: int) -> Batch:
        """The string, the empty tokens behind it, and the answers as their targets."""
        string, answer = self.string(chosen), self.answer(chosen)
        return Batch(
            tokens=torch.cat([string, torch.full_like(answer, self.alphabet)], dim=1),
            targets=torch.cat([torch.full_like(string, UNSCORED), answer], dim=1),
        )


class LetterByLetter(StringQuestion):
    """An answer of several letters, which are all in the string and each of its letters as often as any other.

    Who is blind to order says one letter at all the empty tokens, best the commonest: what is right of its answers is
    that letter's share of the string.
    """

    causal: ClassVar[bool | None] = False

    letters: int = Field(default=2, ge=2)

    @property
    def alphabet(self) -> int:
        """How many letters there are."""
        return self.letters

    def ceiling(self, length: int) -> Ceiling:
        """The share of the commonest letter."""
        return Ceiling(
            value=largest_share(self.letters, length),
            how=f"one letter for all places, the commonest: E max count / n, n letters of {self.letters}",
        )
