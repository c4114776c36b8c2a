"""OP301 shift: adding a constant to all position ids changes nothing.

    f(x; p + c) = f(x; p)   for every c.

It holds where scores see differences of positions only: rotary encodings, and biases by distance. A table of
absolute positions fails it, learned or of waves, and should: for models the law classifies. An encoding that calls
itself relative must obey it. Rotary encodings do because R(p)^T R(s) = R(s - p), which needs R(p) to be orthogonal:
where cosines are laid out in one way and the rotation pairs features in the other, R(p) is none, lengths of queries
change with p, and this law breaks.

Constants stay below `FARTHEST`: an angle worked out in float32 at position p is off by p 2^-24.
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2; mixed layouts: raiyanyahya/how-to-train-your-gpt#6,
NVIDIA/ngpt#10, xiangking/ark-nlp#47.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.blocks.driving import decoder
from orderproof.encodings import Rotary
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_positions
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

CONSTANTS = (1, 37)
FARTHEST = 97


class MixedLayouts(Rotary):
    """Rotary with cosines repeated pair by pair (a a b b) and features paired half by half (x0 x2, x1 x3)."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side
        angles = self.cos_sin(positions, dtype=x.dtype, lengths=lengths)
        cos, sin = (each.repeat_interleave(2, dim=-1).unsqueeze(-3) for each in angles)
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-b, a], dim=-1) * sin


class Shift(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for constant in constants(bench):
            yield Trial(f"all positions moved on by {constant}", partial(_moved, constant=constant))

    def control(self, bench: Bench) -> Sides:
        return other_positions(bench)


def constants(bench: Bench) -> list[int]:
    """What to add, within the length that the model knows."""
    most = bench.driver.longest or bench.driver.stated
    room = FARTHEST if most is None else min(most - bench.length, FARTHEST)
    return sorted({min(constant, room) for constant in (*CONSTANTS, room) if room > 0})


def _moved(bench: Bench, *, constant: int) -> Sides:
    count = bench.length
    usual, moved = bench.positions(count), bench.positions(count, start=constant)
    return bench.at(bench.tokens, usual), bench.at(bench.tokens, moved)


LAW = Shift(
    code="OP301",
    name="shift",
    statement="Adding a constant to all position ids changes nothing.",
    expectation={},
    fix="A table of absolute positions breaks this by design. A rotary encoding must not: pair features in the "
    "layout that the cosines have, and turn queries and keys by the same positions.",
    honest=decoder,
    faulty=lambda: decoder(MixedLayouts(8)),
    needs=frozenset({"positions"}),
)
