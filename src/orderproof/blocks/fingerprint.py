"""The small models whose laws, side by side, are the fingerprint of an encoding.

Two layers, because one causal layer without positions is blind to the order of its prompt and two are not.
An encoding of several axes reads its tokens row by row, as the patches of a square picture.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from orderproof.blocks.transformer import Transformer

if TYPE_CHECKING:
    from jaxtyping import Int


def fingerprint_block(
    encoding: str,
    *,
    causal: bool,
    layers: int = 2,
    width: int = 32,
    heads: int = 4,
    length: int = 64,
    seed: int = 0,
) -> Transformer:
    """The small transformer from features to features that has this encoding; the same one for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        block = _Picture(width, heads, layers, encoding=encoding, causal=causal, length=length)
        for parameter in block.encoding.parameters():
            # As wide as the inputs: a table drawn with deviation 0.02 would hide what it does below the tolerance.
            nn.init.normal_(parameter)
    block.side = math.isqrt(length)
    return block.eval()


def row_by_row(count: Int[Tensor, "*batch token"], *, axes: int, side: int) -> Int[Tensor, "*axes_and_batch token"]:
    """The positions of patches counted row by row in a picture ``side`` wide, frame by frame where there are frames."""
    if axes == 1:
        return count
    places = []
    for _ in range(axes - 1):
        places.append(count % side)
        count = count // side
    return torch.stack([count, *reversed(places)])


class _Picture(Transformer):
    """A transformer that counts its tokens row by row where its encoding has several axes."""

    side = 8

    def _place(self, count: Tensor) -> Tensor:
        return row_by_row(count, axes=self.encoding.claims.ndim, side=self.side)
