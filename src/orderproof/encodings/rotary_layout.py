"""Conversion of query and key projections between rotary layouts.

Pair i of a rotation is features (2i, 2i + 1) in layout "interleaved" and (i, i + r/2) in layout "half", for r rotated
features per head. With P the permutation of a head's features from one layout to the other,

    R_half(p) P = P R_interleaved(p)          and so          <R_half(p) P q, R_half(s) P k> = <R_i(p) q, R_i(s) k>

because P keeps inner products. For weights, q = W x becomes P q = (P W) x: only rows are permuted.
Convert both projections, each with its own number of heads (keys have fewer in grouped-query attention), their biases,
and norms that scale a head's features after the projection. Values are not rotated and stay. Split a fused projection
first.
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2.2 (pairs 2i, 2i + 1); EleutherAI's gpt-neox,
megatron/model/positional_embeddings.py, rotate_half (halves).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._rotary_pairs import RotaryLayout, check_rotary_layout
from orderproof.encodings.checks import check_size
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float


def convert_rotary_layout(
    weight: Float[Tensor, "head_x_feature *in"],
    *,
    heads: int,
    src: RotaryLayout,
    dst: RotaryLayout,
    rotary_width: int | None = None,
) -> Float[Tensor, "head_x_feature *in"]:
    """The weight [out, in] or bias [out] of a query or key projection, with rows in layout ``dst``.

    ``heads`` is the number of heads of this projection, ``rotary_width`` the number of rotated features per head
    (default: all). The result is a new tensor. Raises `EncodingError` for sizes that do not fit.
    """
    check_size("convert_rotary_layout", "heads", heads)
    check_rotary_layout("convert_rotary_layout, src", src)
    check_rotary_layout("convert_rotary_layout, dst", dst)
    if not weight.is_floating_point() or weight.dim() not in (1, 2) or not len(weight) or len(weight) % heads:
        came = f"{weight.dtype} {list(weight.shape)}"
        raise EncodingError(
            f"convert_rotary_layout: weight must be floating [{heads} * head_width, in] or a bias, got {came}"
        )
    head_width = len(weight) // heads
    if rotary_width is None:
        check_size("convert_rotary_layout", "head_width (rows / heads)", head_width, even=True)
    width = check_size(
        "convert_rotary_layout", "rotary_width", head_width if rotary_width is None else rotary_width, even=True
    )
    if width > head_width:
        raise EncodingError(
            f"convert_rotary_layout: rotary_width must be at most {head_width} (rows / heads), got {width}"
        )
    order = torch.arange(head_width, device=weight.device)
    if src != dst:
        pairs = order[:width].view(-1, 2).T if dst == "half" else order[:width].view(2, -1).T
        order = torch.cat([pairs.flatten(), order[width:]])
    return weight.reshape(heads, head_width, *weight.shape[1:])[:, order].reshape(weight.shape)
