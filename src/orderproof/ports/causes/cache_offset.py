"""Positions of later calls with a cache: restarted, or off by one.

A key keeps the position that it had when it was cached, so decoding with other positions equals one forward with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from orderproof.laws.ports import PortCall
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

Position = Callable[[int, int, int], int]  # index of the token, index of its call, index of the first token of the call
PATTERNS: dict[str, Position] = {
    "one too large": lambda token, call, start: token + (call > 0),
    "one too small": lambda token, call, start: token - (call > 0),
    "from 0 in each call": lambda token, call, start: token - start,
    "from 1 in each later call": lambda token, call, start: token - start + (call > 0),
    "one more in each call": lambda token, call, start: token + call,
    "one less in each call": lambda token, call, start: max(0, token - call),
}


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del reference, defaults
    for assumed, position in PATTERNS.items():
        change = Change(positions=partial(_positions, position=position))
        yield Candidate("cache offset", "positions after a cache", "counted on", assumed, change, "chunks")


def _positions(call: PortCall, position: Position) -> Sequence[Sequence[int]]:
    ids: list[int] = []
    for index, size in enumerate(call.sizes):
        ids += [position(token, index, len(ids)) for token in range(len(ids), len(ids) + size)]
    return [ids]


CAUSE = Cause("cache offset", 90, _candidates)
