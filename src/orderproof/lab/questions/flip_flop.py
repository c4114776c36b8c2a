"""flip_flop: what was written last, among things to be ignored.

    w b   x b   x b  ...  x b   r ?          x in {write, read, ignore}; a read repeats the last write; answer at r

Each pair of an instruction and its bit is one token here, which the last read is too: length is the number of pairs, so
FFL(T, p) is length T / 2 and `ignored` p. The first pair is a write; those between are ignored with probability p, and
written or read with (1 - p) / 2 each; bits written or ignored are even.

What a bag knows: reads stand after the write they repeat, so those of ones can be dealt out to the writes of ones in
as many ways whatever the order of the writes: they say nothing of it. So of m writes, z of them of ones, the last was a
one with probability z / m, and the best is to say what was written more often:

    ceiling = E L(m),   m = 1 + Bin(length - 2, (1 - p) / 2),   L(m) the mean share of the commoner bit of m

The more is ignored the fewer the writes, and the better a bag does: .975 for 3 pairs at p = .8.
Source: Liu et al. 2023, "Exposing Attention Glitches with Flip-Flop Language Modeling", arXiv:2306.00946, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb
from typing import ClassVar

import torch
from pydantic import Field

from orderproof.errors import UsageError
from orderproof.lab.letter_counts import largest_share
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Question, Row

WRITE, READ, IGNORE = range(3)
ASKED = 6  # after each instruction with each bit


class FlipFlop(Question):
    """The last write."""

    name: ClassVar[str] = "flip_flop"
    statement: ClassVar[str] = "Among bits written, read and to be ignored: which was written last?"
    source: ClassVar[str] = (
        "Liu et al. 2023, Exposing Attention Glitches with Flip-Flop Language Modeling, arXiv:2306.00946"
    )
    train_lengths: ClassVar[tuple[int, int]] = (32, 32)
    test_lengths: ClassVar[tuple[int, ...]] = (16, 32, 64, 128, 256)

    ignored: float = Field(default=0.8, ge=0, le=1)

    @property
    def vocabulary(self) -> int:
        return ASKED + 1

    @property
    def answers(self) -> tuple[int, ...]:
        return (0, 1)

    def tokens(self, length: int) -> int:
        """One for each pair; no fewer than the first write and the last read."""
        if length < 2:
            raise UsageError(f"flip_flop: expected 2 pairs or more, the first write and the last read; got {length}")
        return length

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        size = (rows, self.tokens(length) - 1)
        luck = torch.rand(size, generator=generator, dtype=torch.float64)
        bits = torch.randint(2, size, generator=generator)
        written = luck >= (1 + self.ignored) / 2
        written[:, 0] = True
        does = torch.where(luck < self.ignored, IGNORE, READ).masked_fill(written, WRITE)
        places = torch.arange(size[1]).expand(size)
        last = bits.gather(1, places.masked_fill(~written, 0).cummax(1).values)
        return _batch(2 * does + torch.where(does == READ, last, bits), last[:, -1:])

    def ceiling(self, length: int) -> Ceiling:
        writes = (1 - Fraction(str(self.ignored))) / 2
        between = self.tokens(length) - 2
        terms = (
            comb(between, more) * writes**more * (1 - writes) ** (between - more) * largest_share(2, 1 + more)
            for more in range(between + 1)
        )
        return Ceiling(
            value=sum(terms, Fraction(0)),
            how="what was written more often: E of the commoner bit's share of m writes, m - 1 binomial",
        )

    def everything(self, length: int) -> Iterator[Row]:
        ignored = Fraction(str(self.ignored))
        weights = {WRITE: (1 - ignored) / 4, IGNORE: ignored / 2}
        moves = [(does, bit, weights[does]) for does in weights for bit in (0, 1)] + [(READ, 0, (1 - ignored) / 2)]
        for first, rest in product((0, 1), product(moves, repeat=self.tokens(length) - 2)):
            last, row, weight = first, [2 * WRITE + first], Fraction(1, 2)
            for does, bit, share in rest:
                last = bit if does == WRITE else last
                row.append(2 * does + (last if does == READ else bit))
                weight *= share
            one = _batch(torch.tensor([row]), torch.tensor([[last]]))
            yield Row(tokens=tuple(one.tokens[0].tolist()), targets=tuple(one.targets[0].tolist()), weight=weight)


def _batch(pairs: torch.Tensor, last: torch.Tensor) -> Batch:
    return Batch(
        tokens=torch.cat([pairs, torch.full_like(last, ASKED)], dim=1),
        targets=torch.cat([torch.full_like(pairs, UNSCORED), last], dim=1),
    )


QUESTION = FlipFlop
