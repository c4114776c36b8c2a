"""extrapolate: say the next letter of a source in which it hangs on the one before the last.

    x_{t+1} = x_{t-1} with probability 1 - noise, else the other letter          two letters, the first two even

The model reads x_0 ... x_{T-1} and is to say x_{t+1} at each x_t: language modelling, where everything is known. All
pairs (x_{t-1}, x_t) are equally likely, so the last letter alone says nothing of the next. Per letter, in nats:

    who sees the order     noise-entropy h = -noise ln noise - (1 - noise) ln(1 - noise), the entropy rate;
                           over a row (ln 2 + (T - 1) h) / T, as nothing is known of x_1
    who counts             H(x_{t+1} | x_t, bag of x_0 ... x_{t-1}), summed forward over the last two letters and the
                           ones so far: O(T^2) steps, in double precision
    who knows nothing      ln 2

The reader that counts is a decoder of one layer without position encoding: at a place it knows the letter there and the
bag of those before. (A first-order source would not do: the letter at the place is all there is to know.)
Source: ours; the question of reading on past the trained length is that of Press et al. 2022, "Train Short, Test Long",
arXiv:2108.12409.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from orderproof.lab.question import Batch, Ceiling, Measure, Question, Row


class Extrapolate(Question):
    """Language modelling of a source of the second order."""

    name: ClassVar[str] = "extrapolate"
    statement: ClassVar[str] = "Say the next letter, which is mostly the one before the last, on rows ever longer."
    source: ClassVar[str] = "ours, after Press et al. 2022, Train Short, Test Long, arXiv:2108.12409"
    measure: ClassVar[Measure] = "nats"
    causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (64, 64)
    test_lengths: ClassVar[tuple[int, ...]] = (64, 128, 256, 512, 1024)

    noise: float = Field(default=0.1, gt=0, lt=1)

    @property
    def vocabulary(self) -> int:
        return 2

    def tokens(self, length: int) -> int:
        return length

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Letters of even and of odd places are two chains; each is the running sum of its changes."""
        changes = torch.rand(rows, length + 1, generator=generator) < self.noise
        changes[:, :2] = torch.randint(2, (rows, 2), generator=generator).bool()
        row = torch.empty(rows, length + 1, dtype=torch.long)
        for chain in (slice(0, None, 2), slice(1, None, 2)):
            row[:, chain] = changes[:, chain].cumsum(1) % 2
        return Batch(tokens=row[:, :-1].contiguous(), targets=row[:, 1:].contiguous())

    @property
    def entropy_rate(self) -> float:
        """The nats of a letter to who knows the two before it."""
        return float(_entropy(np.array(self.noise)))

    def floor(self, length: int) -> float:
        """The nats a letter, over a row of this length, of who knows all that came before."""
        return (math.log(2) + (length - 1) * self.entropy_rate) / length

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(
            value=self._counting(length),
            how="H(next | last, bag of those before), by a forward sum over the last two letters and the ones so far",
        )

    def everything(self, length: int) -> Iterator[Row]:
        noise = Fraction(str(self.noise))
        for row in product((0, 1), repeat=length + 1):
            changed = sum(row[t] != row[t - 2] for t in range(2, length + 1))
            weight = Fraction(1, 2 ** min(2, length + 1)) * noise**changed * (1 - noise) ** max(0, length - 1 - changed)
            yield Row(tokens=row[:-1], targets=row[1:], weight=weight)

    def _counting(self, length: int) -> float:
        """The mean over places of H(x_{t+1} | x_t, how many of x_0 ... x_{t-1} are ones)."""
        stays = np.array([[1 - self.noise, self.noise], [self.noise, 1 - self.noise]])  # [x_{t-1}, x_{t+1}]
        before = np.zeros((2, 2, length + 1))  # of x_{t-1}, x_t and the ones among x_0 ... x_{t-1}
        before[0, :, 0] = before[1, :, 1] = 0.25
        nats = math.log(2)
        for _ in range(1, length):
            following = np.einsum("abc,an->bnc", before, stays)  # of x_t, x_{t+1} and the same ones
            group = following.sum(axis=1)
            share = np.divide(following[:, 1], group, out=np.zeros_like(group), where=group > 0)
            nats += float((group * _entropy(share)).sum())
            before = following
            before[1] = np.roll(before[1], 1, axis=-1)
        return nats / length


def _entropy(share: np.ndarray) -> np.ndarray:
    """The entropy of a coin [nats]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(p > 0, -p * np.log(p), 0.0) for p in (share, 1 - share)]
    return np.asarray(terms[0] + terms[1])


QUESTION = Extrapolate
