"""Questions in which a decoder rewrites a string; a single forward pass determines its greedy output.

    x_1 ... x_n  SEP  y_1 ... y_n          the targets at SEP, y_1, ..., y_n are y_1, ..., y_n, END

**One pass is sufficient.** Greedy decoding produces y and END if and only if the most likely token is right at each of
these positions of the row x SEP y. If it is right at all of them, the first generated token is y_1, so the second
follows the same prefix as in the row and is y_2, and so on to END. If it is wrong somewhere, the generated tokens agree
with y up to the first such position, so the same wrong token is generated there. The argument needs a causal model,
whose output at a position does not depend on later tokens. `exact_match` is therefore measured without decoding.

**The ceiling.** A bag-of-tokens predictor knows, at a position, the token there and the bag of the tokens before it. Of
all rows whose x has the same bag, at most one is right: they are indistinguishable at SEP, and stay so up to the first
position where two of them have different targets. So at most one permutation of each bag is right, and for n letters
out of V there are C(n + V - 1, n) bags:

    exact match <= C(n + V - 1, n) / V^n

The bound is attained by writing the letters in ascending order. Let a be the token at the position, the m-th written.
Letters below a occur in the bag twice for each occurrence in x, letters above a once; so a was written
m - (half the count of the letters below) times, and its other occurrences are those in x. If the two counts differ, the
next letter is a; otherwise it is the next larger letter in the bag, or END.

The bound is for a predictor that knows the length, like any best score on rows of one length. It holds for a decoder of
*one* layer without position encoding; a second layer can compute positions.
Source: Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers",
arXiv:2305.19466, section 3 (the protocol), theorem 1 (the second layer); the ceiling is ours.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from orderproof.lab.choice_question import ChoiceQuestion
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Measure

if TYPE_CHECKING:
    from jaxtyping import Int

SOURCE = (
    "Kazemnejad et al. 2023, The Impact of Positional Encoding on Length Generalization in Transformers, "
    "arXiv:2305.19466, scaled down"
)


def bag_fraction(letters: int, length: int) -> Fraction:
    """The number of bags divided by the number of strings."""
    return Fraction(comb(length + letters - 1, length), letters**length)


class TranscriptionQuestion(ChoiceQuestion):
    """A string of uniformly drawn letters, to be rewritten in a given order."""

    source: ClassVar[str] = SOURCE
    measure: ClassVar[Measure] = "exact_match"
    requires_causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (1, 10)
    test_lengths: ClassVar[tuple[int, ...]] = (4, 7, *range(10, 21))

    letters: int = Field(default=26, ge=2)

    @abstractmethod
    def target_string(self, string: Int[Tensor, "row letter"]) -> Int[Tensor, "row letter"]:
        """The string to be written, from the string that is read."""

    @property
    def vocabulary(self) -> int:
        """The letters, SEP and END."""
        return self.letters + 2

    @property
    def separator(self) -> int:
        """SEP, the token between the two strings."""
        return self.letters

    @property
    def end(self) -> int:
        """END, the target after the last letter."""
        return self.letters + 1

    def row_length(self, length: int) -> int:
        """Both strings and SEP; END is a target but not an input."""
        return 2 * length + 1

    def choice_counts(self, length: int) -> tuple[int, ...]:
        """One choice per letter."""
        return (self.letters,) * length

    def string(self, chosen: Int[Tensor, "row choice"], length: int) -> Int[Tensor, "row letter"]:
        """The string to be read, by default the choices themselves."""
        return chosen

    def build(self, chosen: Int[Tensor, "row choice"], length: int) -> Batch:
        """The row x SEP y; each target is the next token."""
        string = self.string(chosen, length)
        written = self.target_string(string)
        column = (len(chosen), 1)
        tokens = torch.cat([string, torch.full(column, self.separator), written], dim=1)
        targets = torch.cat([torch.full_like(string, UNSCORED), written, torch.full(column, self.end)], dim=1)
        return Batch(tokens=tokens, targets=targets)

    def ceiling(self, length: int) -> Ceiling:
        """One permutation of each bag."""
        return Ceiling(
            value=bag_fraction(self.letters, length),
            derivation=f"one permutation of each bag: C(n + {self.letters - 1}, n) / {self.letters}^n",
        )
