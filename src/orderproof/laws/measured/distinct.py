"""OP302 distinct: different positions get different encodings, in the dtype in use, in bfloat16 and under autocast.

    f64(x; p) and f64(x; p') clearly differ   =>   f(x; p) and f(x; p') differ   for the last of four tokens at p

in the dtype in use, as the library loads the model in bfloat16, and in float32 under automatic bfloat16. Positions go
out to the stated length: some spaced by a ratio, each with its neighbour, and some that powers of two divide alike.
What float64 does not tell apart either (buckets of distances, a bias so large that the softmax is zero) is by design.
A violation is exact: every number of the two outputs is the same, where float64 tells them apart by more than `CLEAR`
units of rounding.

A table of absolute positions that was made in too few bits has equal rows in float64 too. Distances may share a
bucket by design, absolute positions may not; and only they show in what one token alone gives. So where that changes
with its position at all, it must change with every position.

bfloat16 has 8 bits: of the integers below 4096 it knows 769. Position ids, or angles, that pass through it collapse.
Source: huggingface/diffusers#13920 (all image tokens at one position under autocast), deepspeedai/DeepSpeed#4932.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.far import Call, Precision, dtype_of, precisions, reach_of, reference
from orderproof.laws.measured.law import MeasuredLaw, Noted, Sides, Trial
from orderproof.prover.run import difference

SPACED = 14  # positions spaced by a ratio, each with its neighbour
BEFORE = 3  # tokens before the one that is moved
STIRS = 1000  # units of rounding
CLEAR = 4  # units of rounding, relative to the largest number: what float64 must tell apart


class Coarse(TransformerDriver):
    """The same, with positions that go through the dtype of the weights, or the automatic one."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: object) -> Answer:
        if positions is not None:
            dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else dtype_of(self)
            positions = positions.to(dtype).long()
        return super().call(tokens, positions=positions, **given)  # type: ignore[arg-type]


class Distinct(MeasuredLaw):
    """See the module's text."""

    ladder = False  # float64 is one of the sides

    def trials(self, bench: Bench) -> Iterator[Trial]:
        reach = reach_of(bench)
        places = schedule(reach)
        if len(places) > 1 and _absolute(bench):
            yield Trial(f"one token alone at positions up to {reach - 1}", partial(_alone, places=places))
        for precision in precisions(bench) if len(places) > 1 else ():
            what = f"positions up to {reach - 1} {precision.words}"
            yield Trial(what, partial(_told, places=places, precision=precision))

    def control(self, bench: Bench) -> Sides:
        places = schedule(reach_of(bench))
        made = outputs(reference(bench), places, reference(bench).at)
        return made[:-1], made[1:]


def schedule(reach: int) -> list[int]:
    """Positions from the first that is free up to the last: spaced by a ratio, each with its neighbour.

    And some that are one and the same where positions start anew at a power of two.
    """
    if reach <= BEFORE + 1:
        return []
    spaced = torch.logspace(0, 1, SPACED, base=(reach - 1) / BEFORE, dtype=torch.float64) * BEFORE
    found = {int(place) for place in spaced.round()} | {int(place) + 1 for place in spaced.round()} | {reach - 2}
    found |= {BEFORE, *(BEFORE + 2**power for power in range(5, reach.bit_length()))}
    return sorted(place for place in found if BEFORE <= place < reach)


def outputs(bench: Bench, places: list[int], call: Call) -> Tensor:
    """[place, number]: all that a few tokens give with the last of them at each of these places."""
    tokens = torch.cat([bench.draw(BEFORE + 1, rows=1)] * len(places))
    positions = torch.arange(BEFORE + 1).repeat(len(tokens), 1)
    positions[:, -1] = torch.tensor(places)
    return call(tokens, bench.driver.first_position + positions).reshape(len(places), -1)


def _told(bench: Bench, *, places: list[int], precision: Precision) -> Sides | Noted:
    """For each place: 1, and whether it is told from all before it that float64 clearly tells it from."""
    wide = reference(bench, precision)
    exact = outputs(wide, places, wide.at)
    used = outputs(bench, places, precision.call)
    if not bool(exact.isfinite().all()) or not bool(used.isfinite().all()):
        return exact, used.to(exact.dtype)  # the measurement says where
    clear = torch.cdist(exact, exact, p=float("inf")) > CLEAR * precision.eps * exact.abs().max()
    if not bool(clear.any()):
        raise Unsupported(f"float64 tells no positions apart by more than {CLEAR} units of rounding")
    return _merged(clear & (used.unsqueeze(0) == used.unsqueeze(1)).all(-1), places)


def _absolute(bench: Bench) -> bool:
    """Whether one token alone shows where it is."""
    try:
        near = _lone(bench, [BEFORE, BEFORE + 1])
    except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
        return False
    return difference(near[0], near[1]) > STIRS * torch.finfo(dtype_of(bench.driver)).eps


def _alone(bench: Bench, *, places: list[int]) -> Sides | Noted:
    made = _lone(reference(bench), places)
    if not bool(made.isfinite().all()):
        return made, made
    apart = torch.cdist(made, made, p=float("inf")) > STIRS * torch.finfo(made.dtype).eps * made.abs().max()
    return _merged(~apart, places)


def _lone(bench: Bench, places: list[int]) -> Tensor:
    """[place, number]: what one token gives alone at each place."""
    tokens = torch.cat([bench.draw(1, rows=1)] * len(places))
    positions = bench.driver.first_position + torch.tensor(places).unsqueeze(-1)
    return bench.at(tokens, positions).reshape(len(places), -1)


def _merged(same: Tensor, places: list[int]) -> Noted:
    """For each place: 1, and 0 where an earlier one is the same; and a pair in words."""
    merged = torch.nonzero(same.tril(-1))
    told = torch.ones(len(places), dtype=torch.float64)
    told[merged[:, 0]] = 0.0
    note = ""
    if len(merged):
        later, earlier = (places[int(i)] for i in merged[0])
        note = f"{earlier} and {later} are one position, and {len(merged)} pairs in all"
    return Noted(torch.ones_like(told), told, note)


LAW = Distinct(
    code="OP302",
    name="distinct",
    statement="Different positions get different encodings, in the dtype in use and in bfloat16.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Keep position ids integers and work out angles and tables from them in float32 or wider, outside autocast; "
    "round the result, not the positions.",
    diff="-embedding = table.to(torch.bfloat16)[position_ids]\n+embedding = table.float()[position_ids]",
    honest=decoder,
    faulty=lambda: decoder(of=Coarse),
    needs=frozenset({"positions"}),
)
