"""Small models whose audit shows the order properties of an encoding.

Two layers, because one causal layer without positions does not see the order of its prompt, and two do.
For an encoding of several axes, tokens are the patches of a square image in raster order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from orderproof.blocks.transformer import Transformer
from orderproof.seeded_random import seeded_random

if TYPE_CHECKING:
    from jaxtyping import Int


def fingerprint_model(
    encoding: str,
    *,
    causal: bool,
    layers: int = 2,
    width: int = 32,
    heads: int = 4,
    length: int = 64,
    seed: int = 0,
) -> Transformer:
    """A small transformer from features to features with this encoding, deterministic for a seed.

    ``encoding`` is a registered name or FILE.py:CLASS; ``length`` is the number of positions of those with a table.
    """
    with seeded_random(seed):
        block = _PatchTransformer(width, heads, layers, encoding=encoding, causal=causal, length=length)
        for parameter in block.encoding.parameters():
            # On the scale of the inputs: a table with deviation 0.02 would have effects below the tolerance.
            nn.init.normal_(parameter)
    block.side = math.isqrt(length)
    return block.eval()


def raster_positions(
    count: Int[Tensor, "*batch token"], *, axes: int, side: int
) -> Int[Tensor, "*axes_and_batch token"]:
    """The positions of patches in raster order: rows of ``side`` patches, then frames if there are three axes."""
    if axes == 1:
        return count
    coordinates = []
    for _ in range(axes - 1):
        coordinates.append(count % side)
        count = count // side
    return torch.stack([count, *reversed(coordinates)])


class _PatchTransformer(Transformer):
    """A transformer whose default positions are in raster order if its encoding has several axes."""

    side = 8

    def _expand_position_axes(self, count: Tensor) -> Tensor:
        return raster_positions(count, axes=self.encoding.claims.ndim, side=self.side)
