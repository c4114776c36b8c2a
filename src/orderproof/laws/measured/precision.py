"""OP303 precision: far positions cost no more precision than near ones.

    err(p) <= RATIO max(err(near), eps) + ANGLES p 2^-24

err(p) is the difference to the same weights loaded in float64, of the later half of the tokens, moved out by p from the
first half: relative to the length of a typical output, and the median over tokens and rows, which the few tokens that
rounding sends to another expert do not move. err(near) is the largest of a few p that any precision knows. eps is the
unit of the dtype: that in use, bfloat16 as the library loads the model, or that of autocast. An angle worked out in
float32 at position p is off by p 2^-24, which is allowed.

What it finds is rounding that grows with the position: frequencies or positions in half precision. Rounding to 8 bits
moves a frequency by up to 2^-9 of itself, and at p = 1000 an angle by 2 radians. Moving all tokens out together
shows nothing of it where only distances count. No p is a power of two: those are exact in every precision.
The reference is made anew from the weights: a wide copy of a model whose frequencies were rounded has them rounded.
A trial counts only if moving the later half out by one part in 256 more would have been seen: what bfloat16 rounds.
Source: EleutherAI/gpt-neox#1003; huggingface/transformers#25681, #29496; deepspeedai/DeepSpeed#4932.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.blocks.driving import decoder
from orderproof.encodings import Rotary
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_positions
from orderproof.laws.measured.far import Call, Precision, precisions, reach_of, reference
from orderproof.laws.measured.law import MeasuredLaw, Noted, Sides, Trial

MANY = 4  # rows, for a median
NEAR = (0, 1, 3, 5)
PARTS = (0.003, 0.05, 0.61, 1.0)  # of the way out
RATIO = 2.0  # in 10 kinds of models err(p) was at most 1.2 err(0), where nothing chooses among tokens
ANGLES = 8.0  # units of float32 rounding by which an angle may be off, as the output shows it
COARSE = 256  # from here on bfloat16 does not know every integer


class RoundedFrequencies(Rotary):
    """Rotary whose frequencies are cast with the weights, as `.to(dtype)` casts a buffer."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side, lengths
        frequencies = torch.tensor(self.spectrum.frequencies).to(x.dtype).float()
        angles = positions.unsqueeze(-1) * torch.cat([frequencies, frequencies])
        a, b = x.chunk(2, dim=-1)
        turned = x * angles.cos().unsqueeze(-3) + torch.cat([-b, a], dim=-1) * angles.sin().unsqueeze(-3)
        return turned.to(x.dtype)


class Precise(MeasuredLaw):
    """See the module's text."""

    ladder = False  # float64 is one of the sides

    def trials(self, bench: Bench) -> Iterator[Trial]:
        reach = reach_of(bench)
        places = starts(reach, bench.length)
        for precision in precisions(bench) if places else ():
            what = f"positions up to {reach - 1} {precision.words}"
            yield Trial(what, partial(_beyond, places=places, precision=precision))

    def control(self, bench: Bench) -> Sides:
        return other_positions(bench)


def starts(reach: int, tokens: int) -> list[int]:
    """By how much to move the later half out: odd numbers, up to one before the last position."""
    room = reach - tokens - 1 - reach // COARSE
    return sorted({int(part * room) - 1 | 1 for part in PARTS if part * room > NEAR[-1] + 2})


def _beyond(bench: Bench, *, places: list[int], precision: Precision) -> Sides | Noted:
    """For each place: 1, and 1 and what its error is beyond the budget, relative to a typical output."""
    wide = reference(bench, precision)
    every = [*NEAR, *places]
    exact, used = outputs(wide, every, wide.at), outputs(bench, every, precision.call)
    if not bool(exact.isfinite().all()) or not bool(used.isfinite().all()):
        return exact, used  # the measurement says where
    errors = differences(exact, used)
    near, error = errors[: len(NEAR)], errors[len(NEAR) :]
    budget = RATIO * max(float(near.max()), precision.eps) + ANGLES * torch.tensor(places) * 2.0**-24
    nearby = outputs(wide, [place + 1 + place // COARSE for place in places], wide.at)
    judged = differences(exact[len(NEAR) :], nearby) > budget
    if not bool(judged.any()):
        raise Unsupported("positions rounded to bfloat16 would change nothing that rounding does not")
    excess = torch.where(judged, error - budget, 0.0).clamp(min=0.0)
    worst = int(excess.argmax())
    note = f"at {places[worst]} an error of {float(error[worst]):.2g}, near the start one of {float(near.max()):.2g}"
    return Noted(torch.ones_like(excess), 1 + excess, note)


def outputs(bench: Bench, places: list[int], call: Call) -> Tensor:
    """[place, row and token, feature]: what tokens give, the later half of them moved out by each of these."""
    count = bench.length
    tokens = torch.cat([bench.draw(count, rows=MANY)] * len(places))
    later = torch.arange(count) >= count // 2
    moved = torch.tensor(places).repeat_interleave(MANY).unsqueeze(-1) * later
    made = call(tokens, bench.driver.first_position + torch.arange(count) + moved).double()
    made = made[:, count // 2 :] if made.dim() == 3 else made
    return made.reshape(len(places), -1, made.shape[-1])


def differences(first: Tensor, second: Tensor) -> Tensor:
    """[place]: the median length of a difference, relative to that of an output."""
    gap, size = (first - second).norm(dim=-1), first.norm(dim=-1)
    found: Tensor = gap.median(dim=-1).values / size.median()
    return found


LAW = Precise(
    code="OP303",
    name="precision",
    statement="Far positions cost no more precision than near ones, in the dtype in use and in bfloat16.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Keep frequencies and positions out of casts: work out angles in float32 or wider from integer positions, "
    "and round their cosines and sines only.",
    diff="-angles = position_ids.to(x.dtype) * inv_freq\n+angles = position_ids.double() * inv_freq.double()",
    honest=decoder,
    faulty=lambda: decoder(RoundedFrequencies(8)),
    needs=frozenset({"positions"}),
)
