"""who_did_what: tell from "the cat chased the dog" whether it was the cat.

    the a verb the b q          a, b two different nouns, q one of them          answer at the last token: q = a

The bag of a row and its last token are those of "the b verb the a q", whose answer is the other one. A reader that is
blind to order says the same to both: it is right once in two. Every row has one such partner, and the test set holds
both, so that *every* blind reader scores exactly 1/2 on it.
Source: ours; the sentence is the example with which the project started.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import ClassVar

import torch
from pydantic import Field

from orderproof.errors import UsageError
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Question, Row

LENGTH = 6


class WhoDidWhat(Question):
    """Tell the one who did it from the one it was done to."""

    name: ClassVar[str] = "who_did_what"
    statement: ClassVar[str] = "In 'the cat chased the dog', was it the cat that chased?"
    source: ClassVar[str] = "ours"
    balanced: ClassVar[bool] = True
    train_lengths: ClassVar[tuple[int, int]] = (LENGTH, LENGTH)
    test_lengths: ClassVar[tuple[int, ...]] = (LENGTH,)

    nouns: int = Field(default=17, ge=2)
    verbs: int = Field(default=6, ge=1)

    @property
    def vocabulary(self) -> int:
        return 3 + self.nouns + self.verbs  # no, yes, the

    @property
    def answers(self) -> tuple[int, ...]:
        return (0, 1)

    def tokens(self, length: int) -> int:
        if length != LENGTH:
            raise UsageError(f"who_did_what: expected the length {LENGTH}, that of its sentences; got {length}")
        return LENGTH

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        a = torch.randint(self.nouns, (rows,), generator=generator)
        b = (a + torch.randint(1, self.nouns, (rows,), generator=generator)) % self.nouns
        verb = torch.randint(self.verbs, (rows,), generator=generator)
        yes = torch.randint(2, (rows,), generator=generator)
        return self._batch(a, b, verb, yes)

    def test(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Every sentence there is, however many rows are asked for."""
        every = torch.cartesian_prod(*(torch.arange(n) for n in (self.nouns, self.nouns, self.verbs, 2)))
        return self._batch(*every[every[:, 0] != every[:, 1]].unbind(1))

    def exhausts(self, length: int, rows: int) -> bool:
        return True

    def ceiling(self, length: int) -> Ceiling:
        self.tokens(length)
        return Ceiling(value=Fraction(1, 2), how="each bag comes in two orders with opposite answers")

    def everything(self, length: int) -> Iterator[Row]:
        pairs = list(permutations(range(self.nouns), 2))
        weight = Fraction(1, len(pairs) * self.verbs * 2)
        for a, b in pairs:
            for verb in range(self.verbs):
                for yes in (0, 1):
                    one = self._batch(*(torch.tensor([x]) for x in (a, b, verb, yes)))
                    yield Row(
                        tokens=tuple(one.tokens[0].tolist()), targets=tuple(one.targets[0].tolist()), weight=weight
                    )

    def _batch(self, a: torch.Tensor, b: torch.Tensor, verb: torch.Tensor, yes: torch.Tensor) -> Batch:
        the = torch.full_like(a, 2)
        asked = torch.where(yes.bool(), a, b)
        tokens = torch.stack([the, 3 + a, 3 + self.nouns + verb, the, 3 + b, 3 + asked], dim=1)
        targets = torch.full_like(tokens, UNSCORED)
        targets[:, -1] = yes
        return Batch(tokens=tokens, targets=targets)


QUESTION = WhoDidWhat
