"""Rotation of feature pairs.

    (a, b)  ->  (a cos - b sin,  b cos + a sin)

Pair i is features (i, i + r/2) in layout "half" (NeoX, Hugging Face) and (2i, 2i + 1) in layout "interleaved" (the
RoFormer paper, GPT-J, Meta's Llama), where r features are rotated and the rest are not changed.
The layouts order the features differently: weights trained with one are wrong with the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float

RotaryLayout = Literal["half", "interleaved"]


def check_rotary_layout(owner: str, layout: str) -> None:
    """Reject an unknown layout."""
    if layout not in ("half", "interleaved"):
        raise EncodingError(f"{owner}: layout must be 'half' or 'interleaved', got {layout!r}")


def apply_rotary(
    x: Float[Tensor, "batch head token head_width"],
    cos: Float[Tensor, "*#batch_and_head token pair"],
    sin: Float[Tensor, "*#batch_and_head token pair"],
    *,
    layout: RotaryLayout,
) -> Float[Tensor, "batch head token head_width"]:
    """Rotate the first pairs of ``x`` in the dtype of ``cos``, rounded once to the dtype of ``x``."""
    width = 2 * cos.shape[-1]
    partial = width < x.shape[-1]
    wide = (x[..., :width] if partial else x).to(cos.dtype)
    if layout == "half":
        a, b = wide.chunk(2, dim=-1)
    else:
        a, b = wide[..., 0::2], wide[..., 1::2]
    # Rounded before they are joined: compiled, half as long for bfloat16 as rounding the result.
    parts = [(a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype)]
    rotated = torch.cat(parts, dim=-1) if layout == "half" else torch.stack(parts, dim=-1).flatten(-2)
    return torch.cat([rotated, x[..., width:]], dim=-1) if partial else rotated
