"""who_did_what: whether it was the cat that chased in "the cat chased the dog".

    the a verb the b q          a, b two different nouns, q one of them          target at the last token: q = a

"the b verb the a q" has the same bag and the same last token, and the opposite answer. A bag-of-tokens predictor gives
the same answer to both, so it is right for one of the two. The test set contains both rows of every such pair, so that
*every* bag-of-tokens predictor scores exactly 1/2 on it.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import ClassVar

import torch
from pydantic import Field

from orderproof.errors import UsageError
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Question, WeightedRow

SENTENCE_LENGTH = 6


class WhoDidWhat(Question):
    """Agent or patient: the roles of two nouns in a sentence."""

    name: ClassVar[str] = "who_did_what"
    statement: ClassVar[str] = "In 'the cat chased the dog', was it the cat that chased?"
    source: ClassVar[str] = "ours"
    balanced: ClassVar[bool] = True
    train_lengths: ClassVar[tuple[int, int]] = (SENTENCE_LENGTH, SENTENCE_LENGTH)
    test_lengths: ClassVar[tuple[int, ...]] = (SENTENCE_LENGTH,)

    nouns: int = Field(default=17, ge=2)
    verbs: int = Field(default=6, ge=1)

    @property
    def vocabulary(self) -> int:
        return 3 + self.nouns + self.verbs  # no, yes, the

    @property
    def answer_tokens(self) -> tuple[int, ...]:
        return (0, 1)

    def row_length(self, length: int) -> int:
        if length != SENTENCE_LENGTH:
            raise UsageError(f"who_did_what: expected length {SENTENCE_LENGTH}, the words of a sentence; got {length}")
        return SENTENCE_LENGTH

    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        a = torch.randint(self.nouns, (rows,), generator=generator)
        b = (a + torch.randint(1, self.nouns, (rows,), generator=generator)) % self.nouns
        verb = torch.randint(self.verbs, (rows,), generator=generator)
        yes = torch.randint(2, (rows,), generator=generator)
        return self._batch(a, b, verb, yes)

    def test_batch(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Every sentence, for any number of rows."""
        choices = torch.cartesian_prod(*(torch.arange(n) for n in (self.nouns, self.nouns, self.verbs, 2)))
        return self._batch(*choices[choices[:, 0] != choices[:, 1]].unbind(1))

    def is_exhaustive(self, length: int, rows: int) -> bool:
        return True

    def ceiling(self, length: int) -> Ceiling:
        self.row_length(length)
        return Ceiling(value=Fraction(1, 2), derivation="each bag has two permutations with opposite answers")

    def enumerate_rows(self, length: int) -> Iterator[WeightedRow]:
        pairs = list(permutations(range(self.nouns), 2))
        weight = Fraction(1, len(pairs) * self.verbs * 2)
        for a, b in pairs:
            for verb in range(self.verbs):
                for yes in (0, 1):
                    batch = self._batch(*(torch.tensor([x]) for x in (a, b, verb, yes)))
                    yield WeightedRow(
                        tokens=tuple(batch.tokens[0].tolist()), targets=tuple(batch.targets[0].tolist()), weight=weight
                    )

    def _batch(self, a: torch.Tensor, b: torch.Tensor, verb: torch.Tensor, yes: torch.Tensor) -> Batch:
        the = torch.full_like(a, 2)
        queried = torch.where(yes.bool(), a, b)
        tokens = torch.stack([the, 3 + a, 3 + self.nouns + verb, the, 3 + b, 3 + queried], dim=1)
        targets = torch.full_like(tokens, UNSCORED)
        targets[:, -1] = yes
        return Batch(tokens=tokens, targets=targets)


QUESTION = WhoDidWhat
