"""Questions that ask a decoder to write a string anew, and the argument that one pass tells what it would write.

    x_1 ... x_n  SEP  y_1 ... y_n          at SEP, y_1, ..., y_n it is to say y_1, ..., y_n, END

**One pass is enough.** Greedy decoding gives back y and END if, and only if, at each of these places of the one row
x SEP y the likeliest token is the right one. If it is right at all of them: the first token written is y_1, so the
second is written after the same tokens as in the row, so it is y_2, and so on to END. If it is wrong somewhere: up to
the first such place what was written is y, so the same wrong token is written there. This needs a causal model, whose
outputs at a place do not depend on what stands behind it. So `exact_match` is measured without decoding.

**The ceiling.** The reader that counts knows, at a place, the token there and the bag of those before it. Of all rows
whose x has the same bag it gets at most one right: they look alike at SEP, and go on looking alike up to the first
place where two of them have different targets. So at most one order of each bag is right, and of n letters out of V
there are C(n + V - 1, n) bags:

    exact match <= C(n + V - 1, n) / V^n

It is reached by writing the letters in ascending order. Say the token at the place is a, the m-th written. All letters
below a stand in the bag twice, once as read and once as written; those above once; so a was written m - (half of those
below) times, and the rest of a's is as often as it was read. If these differ a comes next, else the next letter above
that is in the bag, else END.

The bound is for a reader that knows the length, as a best possible score on rows of one length does. It is one for a
decoder of *one* layer without position encoding; a second layer can find out where tokens stand.
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

from orderproof.lab.choices import ChoiceQuestion
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Measure

if TYPE_CHECKING:
    from jaxtyping import Int

SOURCE = (
    "Kazemnejad et al. 2023, The Impact of Positional Encoding on Length Generalization in Transformers, "
    "arXiv:2305.19466, scaled down"
)


def share_of_bags(letters: int, length: int) -> Fraction:
    """How many bags there are for each string."""
    return Fraction(comb(length + letters - 1, length), letters**length)


class TranscriptionQuestion(ChoiceQuestion):
    """A string of letters drawn evenly, to be written anew in some order."""

    source: ClassVar[str] = SOURCE
    measure: ClassVar[Measure] = "exact_match"
    causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (1, 10)
    test_lengths: ClassVar[tuple[int, ...]] = (4, 7, *range(10, 21))

    letters: int = Field(default=26, ge=2)

    @abstractmethod
    def written(self, string: Int[Tensor, "row letter"]) -> Int[Tensor, "row letter"]:
        """What is to be written."""

    @property
    def vocabulary(self) -> int:
        """The letters, SEP and END."""
        return self.letters + 2

    @property
    def separator(self) -> int:
        """The token between what is read and what is written."""
        return self.letters

    @property
    def end(self) -> int:
        """What is to be said when all is written."""
        return self.letters + 1

    def tokens(self, length: int) -> int:
        """All but END, which is said and never read."""
        return 2 * length + 1

    def ways(self, length: int) -> tuple[int, ...]:
        """The letters, each evenly."""
        return (self.letters,) * length

    def string(self, chosen: Int[Tensor, "row choice"], length: int) -> Int[Tensor, "row letter"]:
        """The letters to be read: the choices themselves, unless a question says otherwise."""
        return chosen

    def build(self, chosen: Int[Tensor, "row choice"], length: int) -> Batch:
        """The row x SEP y; the target of a place is the token behind it."""
        string = self.string(chosen, length)
        written = self.written(string)
        one = (len(chosen), 1)
        tokens = torch.cat([string, torch.full(one, self.separator), written], dim=1)
        targets = torch.cat([torch.full_like(string, UNSCORED), written, torch.full(one, self.end)], dim=1)
        return Batch(tokens=tokens, targets=targets)

    def ceiling(self, length: int) -> Ceiling:
        """One order of each bag."""
        return Ceiling(
            value=share_of_bags(self.letters, length),
            how=f"one order of each bag: C(n + {self.letters - 1}, n) / {self.letters}^n",
        )
