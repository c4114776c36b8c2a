"""The first row of the usual call between pads, with the mask and the position ids that go with them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from orderproof.laws.measured.bench import Bench


class Padded(NamedTuple):
    """Tokens and their mask, whose first row holds ``row``; position ids where the model takes them."""

    tokens: Tensor
    mask: Tensor
    row: Tensor  # by itself: [1, token, ...]
    given: dict[str, Tensor]  # the mask and the positions, as arguments of a call


def between_pads(bench: Bench, *, left: int, right: int = 0, alone: bool) -> Padded:
    """The row, shortened where a table ends; its mate, where it has one, has a token in the place of every pad."""
    count, pads = bench.length, left + right
    longest = bench.driver.longest
    if longest is not None and count + pads > longest:
        count = longest - pads
    row = bench.tokens[:1, :count]
    filler = bench.draw(pads, rows=1, other=3)
    if bench.driver.pad is not None and not filler.is_floating_point():
        filler = torch.full_like(filler, bench.driver.pad)
    tokens = torch.cat([filler[:, :left], row, filler[:, left:]], dim=1)
    place = torch.arange(count + pads)
    mask = ((place >= left) & (place < left + count)).unsqueeze(0)
    if not alone:
        tokens = torch.cat([tokens, bench.draw(count + pads, rows=1, other=4)])
        mask = torch.cat([mask, torch.ones_like(mask)])
    given = {"mask": mask}
    if "positions" in bench.driver.takes:
        given["positions"] = bench.driver.first_position + (mask.long().cumsum(1) - 1).clamp(min=0)
    return Padded(tokens, mask, row, given)
