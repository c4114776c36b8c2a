"""Feature pairs turned by given angles.

    (a, b)  ->  (a cos - b sin,  b cos + a sin)

Pair i is features (i, i + r/2) in layout "half" (NeoX, Hugging Face) and (2i, 2i + 1) in layout "interleaved" (the
RoFormer paper, GPT-J, Meta's Llama), r being the number of features that are turned; those past r are left alone.
The layouts are the same function of features in another order: weights trained with one are wrong with the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float

Layout = Literal["half", "interleaved"]


def check_layout(owner: str, layout: str) -> None:
    """Refuse a layout that is neither of the two."""
    if layout not in ("half", "interleaved"):
        raise EncodingError(f"{owner}: layout must be 'half' or 'interleaved', got {layout!r}")


def turn_pairs(
    x: Float[Tensor, "batch head token head_width"],
    cos: Float[Tensor, "*#batch_and_head token pair"],
    sin: Float[Tensor, "*#batch_and_head token pair"],
    *,
    layout: Layout,
) -> Float[Tensor, "batch head token head_width"]:
    """Turn the first pairs of ``x``, in the dtype of ``cos``, and round once to that of ``x``."""
    width = 2 * cos.shape[-1]
    wide, rest = x[..., :width].to(cos.dtype), x[..., width:]
    if layout == "half":
        a, b = wide.chunk(2, dim=-1)
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
    else:
        a, b = wide[..., 0::2], wide[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
    turned = turned.to(x.dtype)
    return torch.cat([turned, rest], dim=-1) if width < x.shape[-1] else turned
