"""Questions about a string: its letters, then empty tokens, one for each letter of the answer.

    s_1 ... s_n  e ... e          the letters of the answer are the targets at the e, which are all the same token

A permutation-invariant encoder has the same input at every e, so it gives the same answer at all of them. A decoder can
count the e before it, and so knows its index in the answer. A question with more than one e therefore requires an
encoder, as in the source. A letter and an answer may share a token id.
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

from orderproof.lab.choice_question import ChoiceQuestion
from orderproof.lab.mode_share import expected_mode_share
from orderproof.lab.question import UNSCORED, Batch, Ceiling

if TYPE_CHECKING:
    from jaxtyping import Int

SOURCE = (
    "Deletang et al. 2023, Neural Networks and the Chomsky Hierarchy, arXiv:2207.02098; "
    "evaluated as in Ruoss et al. 2023, Randomized Positional Encodings Boost Length Generalization of Transformers, "
    "arXiv:2305.16843"
)


class StringQuestion(ChoiceQuestion):
    """A string of uniformly drawn letters, and an answer computed from it."""

    source: ClassVar[str] = SOURCE
    train_lengths: ClassVar[tuple[int, int]] = (1, 20)
    test_lengths: ClassVar[tuple[int, ...]] = (10, 20, 40, 60, 80)

    @property
    @abstractmethod
    def alphabet_size(self) -> int:
        """The number of letters: tokens 0, 1, ..., followed by the empty token."""

    @abstractmethod
    def target_letters(self, chosen: Int[Tensor, "row choice"]) -> Int[Tensor, "row answer"]:
        """The targets at the empty tokens."""

    def string(self, chosen: Int[Tensor, "row choice"]) -> Int[Tensor, "row letter"]:
        """The letters of the row, by default the choices themselves."""
        return chosen

    @property
    def vocabulary(self) -> int:
        """The letters and the empty token, or the answers if there are more of them."""
        return max(self.alphabet_size + 1, *(answer + 1 for answer in self.answer_tokens))

    @property
    def answer_tokens(self) -> tuple[int, ...]:
        """The letters, by default."""
        return tuple(range(self.alphabet_size))

    def row_length(self, length: int) -> int:
        """The tokens of the string and the empty tokens."""
        return int(
            self.build(torch.zeros(1, len(self.choice_counts(length)), dtype=torch.long), length).tokens.shape[1]
        )

    def choice_counts(self, length: int) -> tuple[int, ...]:
        """One choice per letter."""
        return (self.alphabet_size,) * length

    def build(self, chosen: Int[Tensor, "row choice"], length: int) -> Batch:
        """The string followed by the empty tokens, whose targets are the answer."""
        string, answer = self.string(chosen), self.target_letters(chosen)
        return Batch(
            tokens=torch.cat([string, torch.full_like(answer, self.alphabet_size)], dim=1),
            targets=torch.cat([torch.full_like(string, UNSCORED), answer], dim=1),
        )


class RearrangementQuestion(StringQuestion):
    """An answer that contains every letter of the string equally often, in another arrangement.

    A bag-of-tokens predictor gives one letter at all the empty tokens, at best the most frequent one: its accuracy is
    the share of that letter in the string.
    """

    requires_causal: ClassVar[bool | None] = False

    letters: int = Field(default=2, ge=2)

    @property
    def alphabet_size(self) -> int:
        """The number of letters."""
        return self.letters

    def ceiling(self, length: int) -> Ceiling:
        """The expected share of the most frequent letter."""
        return Ceiling(
            value=expected_mode_share(self.letters, length),
            derivation=f"one letter at all positions, the most frequent: E max count / n, n letters of {self.letters}",
        )
