"""extrapolate: predict the next letter of a second-order Markov source.

    x_{t+1} = x_{t-1} with probability 1 - noise, else the other letter          two letters, the first two uniform

The model reads x_0 ... x_{T-1} and predicts x_{t+1} at each x_t: language modelling of a known source. All pairs
(x_{t-1}, x_t) are equally likely, so the last letter alone has no information about the next. Per letter, in nats:

    with the order         the entropy rate h = -noise ln noise - (1 - noise) ln(1 - noise);
                           over a row (ln 2 + (T - 1) h) / T, because x_1 is unpredictable
    with the bag           H(x_{t+1} | x_t, bag of x_0 ... x_{t-1}), by a recursion over the last two letters and
                           the number of ones: O(T^2) steps, in double precision
    with nothing           ln 2

The bag-of-tokens predictor is a decoder of one layer without position encoding: at a position it knows the letter there
and the bag of those before. (In a first-order source, the letter at the position would be sufficient.)
Source: ours; evaluation beyond the trained length is that of Press et al. 2022, "Train Short, Test Long",
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

from orderproof.lab.question import Batch, Ceiling, Measure, Question, WeightedRow


class SecondOrderSource(Question):
    """Language modelling of a second-order Markov source."""

    name: ClassVar[str] = "extrapolate"
    statement: ClassVar[str] = (
        "Predict the next letter, which usually repeats the one before the last, on longer and longer rows."
    )
    source: ClassVar[str] = "ours, after Press et al. 2022, Train Short, Test Long, arXiv:2108.12409"
    measure: ClassVar[Measure] = "nats"
    requires_causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (64, 64)
    test_lengths: ClassVar[tuple[int, ...]] = (64, 128, 256, 512, 1024)

    noise: float = Field(default=0.1, gt=0, lt=1)

    @property
    def vocabulary(self) -> int:
        return 2

    def row_length(self, length: int) -> int:
        return length

    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Letters at even and at odd positions form two chains; each is the cumulative sum of its changes mod 2."""
        changes = torch.rand(rows, length + 1, generator=generator) < self.noise
        changes[:, :2] = torch.randint(2, (rows, 2), generator=generator).bool()
        row = torch.empty(rows, length + 1, dtype=torch.long)
        for chain in (slice(0, None, 2), slice(1, None, 2)):
            row[:, chain] = changes[:, chain].cumsum(1) % 2
        return Batch(tokens=row[:, :-1].contiguous(), targets=row[:, 1:].contiguous())

    @property
    def entropy_rate(self) -> float:
        """The entropy of a letter given the two before it [nats]."""
        return float(_entropy(np.array(self.noise)))

    def floor(self, length: int) -> float:
        """The cross-entropy per letter [nats] over a row of this length, given all letters before."""
        return (math.log(2) + (length - 1) * self.entropy_rate) / length

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(
            value=self._bag_entropy(length),
            derivation="H(next | last, bag of those before), by a recursion over two letters and the number of ones",
        )

    def enumerate_rows(self, length: int) -> Iterator[WeightedRow]:
        noise = Fraction(str(self.noise))
        for row in product((0, 1), repeat=length + 1):
            changes = sum(row[t] != row[t - 2] for t in range(2, length + 1))
            weight = Fraction(1, 2 ** min(2, length + 1)) * noise**changes * (1 - noise) ** max(0, length - 1 - changes)
            yield WeightedRow(tokens=row[:-1], targets=row[1:], weight=weight)

    def _bag_entropy(self, length: int) -> float:
        """The mean over positions of H(x_{t+1} | x_t, number of ones among x_0 ... x_{t-1}) [nats]."""
        transition = np.array([[1 - self.noise, self.noise], [self.noise, 1 - self.noise]])  # [x_{t-1}, x_{t+1}]
        joint = np.zeros((2, 2, length + 1))  # P(x_{t-1}, x_t, number of ones among x_0 ... x_{t-1})
        joint[0, :, 0] = joint[1, :, 1] = 0.25
        nats = math.log(2)
        for _ in range(1, length):
            successors = np.einsum("abc,an->bnc", joint, transition)  # P(x_t, x_{t+1}, the same number)
            group = successors.sum(axis=1)
            share = np.divide(successors[:, 1], group, out=np.zeros_like(group), where=group > 0)
            nats += float((group * _entropy(share)).sum())
            joint = successors
            joint[1] = np.roll(joint[1], 1, axis=-1)
        return nats / length


def _entropy(share: np.ndarray) -> np.ndarray:
    """The entropy of a Bernoulli variable [nats]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(p > 0, -p * np.log(p), 0.0) for p in (share, 1 - share)]
    return np.asarray(terms[0] + terms[1])


QUESTION = SecondOrderSource
