"""flip_flop: recall the last written bit among bits to be ignored.

    w b   x b   x b  ...  x b   r ?          x in {write, read, ignore}; a read repeats the last write; target at r

Each pair of an instruction and its bit is one token here, and so is the last read. The length is the number of pairs,
so FFL(T, p) has length T / 2 and `ignored` p. The first pair is a write; the pairs between are ignored with probability
p, and written or read with (1 - p) / 2 each; bits written or ignored are uniform.

The information in the bag: each read follows the write that it repeats, and the reads of ones can be assigned to the
writes of ones in equally many ways for every order of the writes, so the reads carry no information about it. Of m
writes, z of ones, the last is a one with probability z / m, and the best answer is the bit written more often:

    ceiling = E L(m),   m = 1 + Bin(length - 2, (1 - p) / 2),   L(m) the expected share of the more frequent of m bits

With more ignored pairs there are fewer writes, and the ceiling rises: .975 for 3 pairs at p = .8.
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
from orderproof.lab.mode_share import expected_mode_share
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Question, WeightedRow

WRITE, READ, IGNORE = range(3)
READ_QUERY = 6  # the tokens below are the three instructions with each bit


class FlipFlop(Question):
    """The last write."""

    name: ClassVar[str] = "flip_flop"
    statement: ClassVar[str] = "Among bits that are written, read and ignored: which was written last?"
    source: ClassVar[str] = (
        "Liu et al. 2023, Exposing Attention Glitches with Flip-Flop Language Modeling, arXiv:2306.00946"
    )
    train_lengths: ClassVar[tuple[int, int]] = (32, 32)
    test_lengths: ClassVar[tuple[int, ...]] = (16, 32, 64, 128, 256)

    ignored: float = Field(default=0.8, ge=0, le=1)

    @property
    def vocabulary(self) -> int:
        return READ_QUERY + 1

    @property
    def answer_tokens(self) -> tuple[int, ...]:
        return (0, 1)

    def row_length(self, length: int) -> int:
        """One token per pair; at least the first write and the last read."""
        if length < 2:
            raise UsageError(
                f"flip_flop: expected length 2 or more, for the first write and the last read; got {length}"
            )
        return length

    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        size = (rows, self.row_length(length) - 1)
        uniform = torch.rand(size, generator=generator, dtype=torch.float64)
        bits = torch.randint(2, size, generator=generator)
        written = uniform >= (1 + self.ignored) / 2
        written[:, 0] = True
        instructions = torch.where(uniform < self.ignored, IGNORE, READ).masked_fill(written, WRITE)
        positions = torch.arange(size[1]).expand(size)
        last = bits.gather(1, positions.masked_fill(~written, 0).cummax(1).values)
        return _batch(2 * instructions + torch.where(instructions == READ, last, bits), last[:, -1:])

    def ceiling(self, length: int) -> Ceiling:
        writes = (1 - Fraction(str(self.ignored))) / 2
        between = self.row_length(length) - 2
        terms = (
            comb(between, more) * writes**more * (1 - writes) ** (between - more) * expected_mode_share(2, 1 + more)
            for more in range(between + 1)
        )
        return Ceiling(
            value=sum(terms, Fraction(0)),
            derivation="the bit written more often: E of its share of m writes, m - 1 binomial",
        )

    def enumerate_rows(self, length: int) -> Iterator[WeightedRow]:
        ignored = Fraction(str(self.ignored))
        weights = {WRITE: (1 - ignored) / 4, IGNORE: ignored / 2}
        options = [(kind, bit, weights[kind]) for kind in weights for bit in (0, 1)] + [(READ, 0, (1 - ignored) / 2)]
        for first, rest in product((0, 1), product(options, repeat=self.row_length(length) - 2)):
            last, row, weight = first, [2 * WRITE + first], Fraction(1, 2)
            for kind, bit, probability in rest:
                last = bit if kind == WRITE else last
                row.append(2 * kind + (last if kind == READ else bit))
                weight *= probability
            batch = _batch(torch.tensor([row]), torch.tensor([[last]]))
            yield WeightedRow(
                tokens=tuple(batch.tokens[0].tolist()), targets=tuple(batch.targets[0].tolist()), weight=weight
            )


def _batch(pairs: torch.Tensor, last: torch.Tensor) -> Batch:
    return Batch(
        tokens=torch.cat([pairs, torch.full_like(last, READ_QUERY)], dim=1),
        targets=torch.cat([torch.full_like(pairs, UNSCORED), last], dim=1),
    )


QUESTION = FlipFlop
