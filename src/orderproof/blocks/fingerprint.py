"""The small models whose laws, side by side, are the fingerprint of an encoding.

Two layers, because one causal layer without positions is blind to the order of its prompt and two are not.
"""

from __future__ import annotations

import torch
from torch import nn

from orderproof.blocks.transformer import Transformer


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
        block = Transformer(width, heads, layers, encoding=encoding, causal=causal, length=length)
        for parameter in block.encoding.parameters():
            # As wide as the inputs: a table drawn with deviation 0.02 would hide what it does below the tolerance.
            nn.init.normal_(parameter)
    return block.eval()
