"""Rotary layouts: put the rows of query and key projections in the order the other layout wants.

Pair i of a rotation is features (2i, 2i + 1) in layout "interleaved" and (i, i + r/2) in layout "half", r features of
each head being turned. With P the permutation of a head's features that takes the one order to the other,

    R_half(p) P = P R_interleaved(p)          and so          <R_half(p) P q, R_half(s) P k> = <R_i(p) q, R_i(s) k>

because P keeps inner products. In the weights, q = W x becomes P q = (P W) x: only rows move, no number changes.
Both projections must be converted, each with its own number of heads (keys have fewer in grouped-query attention), and
their biases too, as well as norms that scale a head's features after the projection. Values are not turned and stay.
A fused projection must be split first.
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2.2 (pairs 2i, 2i + 1); EleutherAI's gpt-neox,
megatron/model/positional_embeddings.py, rotate_half (halves).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._operands import check_size
from orderproof.encodings._pairs import Layout, check_layout
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float


def convert(
    weight: Float[Tensor, "head_x_feature *in"],
    *,
    heads: int,
    src: Layout,
    dst: Layout,
    rotary_width: int | None = None,
) -> Float[Tensor, "head_x_feature *in"]:
    """The weight [out, in] or bias [out] of a query or key projection, its rows in the order of layout ``dst``.

    ``heads`` is the number of heads that this projection makes, ``rotary_width`` the features of each that are
    turned, where not all are. The result is a new tensor.
    """
    check_size("convert", "heads", heads)
    check_layout("convert, src", src)
    check_layout("convert, dst", dst)
    if not weight.is_floating_point() or weight.dim() not in (1, 2) or not len(weight) or len(weight) % heads:
        came = f"{weight.dtype} {list(weight.shape)}"
        raise EncodingError(f"convert: weight must be floating [{heads} * head_width, in] or a bias, got {came}")
    head_width = len(weight) // heads
    if rotary_width is None:
        check_size("convert", "head_width (rows / heads)", head_width, even=True)
    width = check_size("convert", "rotary_width", head_width if rotary_width is None else rotary_width, even=True)
    if width > head_width:
        raise EncodingError(f"convert: rotary_width must be at most {head_width} (rows / heads), got {width}")
    order = torch.arange(head_width, device=weight.device)
    if src != dst:
        pairs = order[:width].view(-1, 2).T if dst == "half" else order[:width].view(2, -1).T
        order = torch.cat([pairs.flatten(), order[width:]])
    return weight.reshape(heads, head_width, *weight.shape[1:])[:, order].reshape(weight.shape)
