"""Positions far out, and one model in several precisions: what the laws of distinctness and of precision share.

Positions are asked about by their ids, which need few tokens. Powers of two are left out wherever something may be
rounded: they are exact in every precision, and hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from orderproof.driver import Driver
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench

USUAL = 4096  # positions to ask about where nothing says how many there are

Call = Callable[[Tensor, Tensor], Tensor]  # tokens and positions to an output


class Precision(NamedTuple):
    """A way of running the model: the words for it, the unit of its rounding, and the call."""

    words: str
    eps: float
    call: Call


def reaches(driver: Driver) -> list[int]:
    """How many positions to ask about: those that the model states; and where it has no table, as many as usual."""
    if driver.longest is not None:
        return [driver.longest]
    usual = driver.reach or USUAL
    stated = driver.stated or usual
    return sorted({stated, max(stated, usual)})


def precisions(bench: Bench) -> Iterator[Precision]:
    """The dtype in use, bfloat16 as the library loads it, and automatic bfloat16."""
    in_use = dtype_of(bench.driver)
    yield Precision(f"in {str(in_use).removeprefix('torch.')}", torch.finfo(in_use).eps, bench.at)
    eps = torch.finfo(torch.bfloat16).eps
    if in_use != torch.bfloat16:
        yield Precision("in bfloat16", eps, _in_bfloat16(bench))
        yield Precision("under autocast to bfloat16", eps, partial(_autocast, bench))


def reference(bench: Bench, precision: Precision | None = None) -> Bench:
    """The model in float64, its tables and frequencies made anew: those of a rounded model are rounded.

    Where it does not run in float64, float32 serves what is narrower; for the rest this raises `Unsupported`.
    """
    wide = bench.loaded(torch.float64)
    try:
        wide.at(wide.tokens, wide.positions(wide.length))
    except Exception as error:
        wide = bench.loaded(torch.float32)
        if precision is not None and precision.eps <= torch.finfo(torch.float32).eps:
            raise Unsupported("it does not run in float64, which it would be held against") from error
    return wide


def dtype_of(driver: Driver) -> torch.dtype:
    """The dtype of its weights."""
    found: torch.dtype
    found = next((p.dtype for p in driver.module.parameters() if p.is_floating_point()), torch.float32)
    return found


def _in_bfloat16(bench: Bench) -> Call:
    def call(tokens: Tensor, positions: Tensor) -> Tensor:
        given = tokens.to(torch.bfloat16) if tokens.is_floating_point() else tokens
        return bench.loaded(torch.bfloat16).at(given, positions)

    return call


def _autocast(bench: Bench, tokens: Tensor, positions: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return bench.call(tokens, positions=positions, mask=bench.open_mask(tokens), keep=False).output
