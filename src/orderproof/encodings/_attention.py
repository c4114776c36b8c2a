"""Attention with any encoding, on any backend, with the same numbers.

    score[m, n] = scale * (R(m) q[m]) . (R(n) k[n]) + b(m, n)          where query m may see key n
    out[m]      = sum_n softmax(score[m])[n] v[n]

R is the encoding's rotation and b its bias, where it has one. Who may see whom stands in `sight`.
A query that may see no key at all (a pad token on the left of a causal row) gets zeros.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from torch import Tensor
from torch.nn import functional

from orderproof import positions as place
from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._operands import working_dtype
from orderproof.encodings.sight import check_masks, sight
from orderproof.errors import EncodingError, UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Backend = Literal["sdpa", "eager"]


def attention(
    q: Float[Tensor, "batch head query head_width"],
    k: Float[Tensor, "batch key_head key head_width"],
    v: Float[Tensor, "batch key_head key value_width"],
    *,
    encoding: PositionalEncoding,
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"] | None = None,
    causal: bool,
    padding_mask: Bool[Tensor, "batch key"] | None = None,
    mask: Bool[Tensor, "*batch_and_head query key"] | None = None,
    scale: float | None = None,
    lengths: Int[Tensor, " batch"] | int | None = None,
    backend: Backend = "sdpa",
) -> Float[Tensor, "batch head query value_width"]:
    """Attend from each query to the keys it may see.

    Keys take the queries' positions where theirs are not given. ``padding_mask`` is True at real keys. ``mask``, True
    where a query may look, of shape [query, key], [batch, query, key] or [batch, head, query, key], narrows the rest
    further. ``scale`` is the encoding's by default: 1 / sqrt(head_width), of the queries as they are given.
    ``lengths`` is the length at which each row is read, for encodings of state "length". Where there are fewer key
    heads than query heads, neighbouring query heads share one.
    """
    if backend not in ("sdpa", "eager"):
        raise UsageError(f"backend: expected 'sdpa' or 'eager', got {backend!r}")
    _check_operands(q, k, v)
    _check_encoding(encoding, causal=causal)
    batch, heads, queries, keys = *q.shape[:3], k.shape[2]
    check_masks(padding_mask, mask, batch=batch, heads=heads, queries=queries, keys=keys)
    axes = None if encoding.claims.ndim == 1 else encoding.claims.ndim
    q_name, k_name = ("q_positions", "k_positions") if k_positions is not None else ("q_positions", "q_positions")
    k_positions = q_positions if k_positions is None else k_positions
    q_positions = place.check(q_positions, name=q_name, axes=axes, batch=batch, tokens=queries, device=q.device)
    k_positions = place.check(k_positions, name=k_name, axes=axes, batch=batch, tokens=keys, device=k.device)

    scale = encoding.scale(q.shape[-1]) if scale is None else scale
    if encoding.claims.site == "rotate":
        q, k = encoding.rotate(q, k, q_positions, k_positions, lengths=lengths)
    elif lengths is not None:
        encoding.refuse_lengths()
    bias = None
    if encoding.claims.site == "bias":
        bias = encoding.bias(q_positions, k_positions, dtype=working_dtype(q))
    if k.shape[1] != heads:
        k, v = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v))

    order = (q_positions, k_positions) if axes is None else (q_positions[0], k_positions[0])
    visible = sight(*order, causal=causal, padding_mask=padding_mask, mask=mask)
    attend = _sdpa if backend == "sdpa" else _eager
    if visible is None or (padding_mask is None and mask is None):
        return attend(q, k, v, bias, visible, scale=scale)
    blind = ~visible.any(dim=-1, keepdim=True)
    return attend(q, k, v, bias, visible | blind, scale=scale).masked_fill(blind, 0.0)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, visible: Tensor | None, *, scale: float) -> Tensor:
    added = visible if bias is None else bias
    if bias is not None and visible is not None:
        added = bias.masked_fill(~visible, -math.inf)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale)


def _eager(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, visible: Tensor | None, *, scale: float) -> Tensor:
    wide = working_dtype(q)
    scores = (q.to(wide) @ k.to(wide).mT) * scale
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    return (scores.softmax(dim=-1) @ v.to(wide)).to(q.dtype)


def _check_operands(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4 or not x.is_floating_point():
            came = f"{x.dtype} {list(x.shape)}"
            raise UsageError(f"{name}: expected floating [batch, head, token, head_width], got {came}")
        if x.dtype != q.dtype:
            raise UsageError(f"{name}: expected the dtype of q, {q.dtype}, got {x.dtype}")
    if k.shape[:3] != v.shape[:3] or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        came = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
        raise UsageError(f"q, k, v: expected one batch, one head_width, and as many values as keys, got {came}")
    if q.shape[1] % k.shape[1]:
        raise UsageError(f"k: expected a number of heads that divides q's {q.shape[1]}, got {k.shape[1]}")


def _check_encoding(encoding: PositionalEncoding, *, causal: bool) -> None:
    name = type(encoding).__name__
    if encoding.claims.site == "embed":
        raise EncodingError(
            f"{name} acts on embeddings, before there are queries and keys; "
            "call its embed(x, positions) there and pass encoding=NoEncoding() here"
        )
    if encoding.claims.causal_only and not causal:
        raise EncodingError(f"{name} is defined for causal attention only; pass causal=True, or make it bidirectional")
