"""Attention with any encoding, on any backend, with the same numbers.

    score[m, n] = scale * (R(m) q[m]) . (R(n) k[n]) + b(m, n)          where query m may see key n
    out[m]      = sum_n softmax(score[m])[n] v[n]

R is the encoding's rotation and b its bias, where it has one. Who may see whom stands in `sight`.
A query that may see no key at all (a pad token on the left of a causal row) gets zeros.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from orderproof import positions as place
from orderproof.encodings import _diagonal
from orderproof.encodings._attention_arguments import Backend, check_encoding, check_operands, check_options
from orderproof.encodings._documents import check_documents, check_order
from orderproof.encodings._encoding import Content, PositionalEncoding
from orderproof.encodings._flex import flex
from orderproof.encodings._offset import OffsetBias
from orderproof.encodings._operands import working_dtype
from orderproof.encodings.sight import check_masks, sight
from orderproof.errors import PositionError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def attention(
    q: Float[Tensor, "batch head query head_width"],
    k: Float[Tensor, "batch key_head key head_width"],
    v: Float[Tensor, "batch key_head key value_width"],
    *,
    encoding: PositionalEncoding,
    q_positions: Int[Tensor, "*axes_and_batch query"],
    k_positions: Int[Tensor, "*axes_and_batch key"] | None = None,
    causal: bool,
    window: tuple[int, int] | None = None,
    q_documents: Int[Tensor, "*batch query"] | None = None,
    k_documents: Int[Tensor, "*batch key"] | None = None,
    padding_mask: Bool[Tensor, "batch key"] | None = None,
    mask: Bool[Tensor, "*batch_and_head query key"] | None = None,
    notes: Float[Tensor, "batch head key note"] | None = None,
    lengths: Int[Tensor, " batch"] | int | None = None,
    scale: float | None = None,
    backend: Backend = "sdpa",
) -> Float[Tensor, "batch head query value_width"]:
    """Attend from each query to the keys it may see.

    Keys take the queries' positions where theirs are not given. ``window`` (back, ahead) lets a query see keys at
    most so many positions before and after it. ``q_documents`` and ``k_documents`` number the documents that are packed
    in one row (see `positions.documents`): a query sees the keys of its own; keys take the queries' where theirs are
    not given. ``padding_mask`` is True at real keys. ``mask``, True where a query may look, of shape [query, key],
    [batch, query, key] or [batch, head, query, key], narrows the rest further. Causal order goes by positions, so
    those of the keys that start again in what a query sees are refused (on a GPU and while tracing torch asserts it,
    and beside a ``mask`` it is not looked at).
    ``notes`` is what the encoding's `notes` made of the keys' tokens, ``lengths`` the length each row is read at;
    both are for encodings that say so in their claims. ``scale`` is the encoding's own by default, 1 /
    sqrt(head_width) for most. Where there are fewer key heads than query heads, neighbouring query heads share one.
    Backend "flex" is FlexAttention: it has no gradient on the CPU, and a bias without content is rounded to float32 for
    it. An encoding that adds to the values needs the weights themselves, which only "eager" has: it is used whatever
    the backend.
    """
    check_options(causal=causal, window=window, scale=scale, backend=backend)
    check_operands(q, k, v)
    check_encoding(encoding, q, causal=causal, notes=notes, lengths=lengths)
    batch, heads, queries, keys = *q.shape[:3], k.shape[2]
    check_masks(padding_mask, mask, batch=batch, heads=heads, queries=queries, keys=keys, device=q.device)
    documents = check_documents(q_documents, k_documents, batch=batch, queries=queries, keys=keys, device=q.device)
    p, s = _positions(encoding, q, k, q_positions, k_positions)
    scale = encoding.scale(q.shape[-1]) if scale is None else scale

    content_q, content_k = q, k
    if encoding.claims.site == "rotate":
        q, k = encoding.rotate(q, k, p, s) if lengths is None else encoding.rotate(q, k, p, s, lengths=lengths)
    if k.shape[1] != heads:
        k, v, content_k = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v, content_k))

    order = (p, s) if encoding.claims.ndim == 1 else (p[0], s[0])
    if backend == "sdpa" and documents is None and padding_mask is None and mask is None:
        mixed = _by_distance(q, k, v, encoding, order, causal=causal, window=window, scale=scale)
        if mixed is not None:
            return mixed
    visible = sight(*order, causal=causal, window=window, documents=documents, padding_mask=padding_mask, mask=mask)
    if causal:
        narrowed = None if mask is None else visible
        check_order(s, axes=encoding.claims.ndim, documents=documents, padding_mask=padding_mask, visible=narrowed)
    bias = None
    by_score = backend == "flex" and not (encoding.claims.content or encoding.claims.values)
    if encoding.claims.site == "bias" and not by_score:
        content = None
        if encoding.claims.content:
            content = Content(q=content_q, k=content_k, scale=scale, visible=visible, notes=notes)
        bias = encoding.bias(p, s, content=content, dtype=working_dtype(q))
    blind = None
    if visible is not None and any(x is not None for x in (documents, padding_mask, mask, window)):
        blind = ~visible.any(dim=-1, keepdim=True)
        visible = visible | blind
    if backend == "eager" or encoding.claims.values:
        mixed = _eager(q, k, v, bias, visible, scale=scale, encoding=encoding, order=(p, s))
    elif backend == "flex":
        score_mod = encoding.score_mod(p, s) if encoding.claims.site == "bias" and bias is None else None
        mixed = flex(q, k, v, bias, visible, score_mod=score_mod, scale=scale)
    else:
        mixed = _sdpa(q, k, v, bias, visible, scale=scale)
    return mixed if blind is None else mixed.masked_fill(blind, 0.0)


def _by_distance(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    order: tuple[Tensor, Tensor],
    *,
    causal: bool,
    window: tuple[int, int] | None,
    scale: float,
) -> Tensor | None:
    """The same without a matrix for what may be seen or is added; None where it takes one."""
    if not isinstance(encoding, OffsetBias) and (encoding.claims.site == "bias" or not (causal or window)):
        return None
    reach = _diagonal.reach_of(*order, causal=causal, window=window)
    if reach is None:
        return None
    queries, keys = q.shape[2], k.shape[2]
    first, last = _diagonal.distances(reach, queries, keys)
    if isinstance(encoding, OffsetBias):
        vector = encoding.diagonals(first, last, dtype=working_dtype(q), device=q.device)
    elif not reach.hides_somebody(queries, keys):
        return functional.scaled_dot_product_attention(q, k, v, scale=scale)
    elif window is None and queries == keys and reach.offset == 0:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    else:
        vector = torch.zeros(1, last - first + 1, dtype=q.dtype, device=q.device)
    return _diagonal.attend(q, k, v, vector, reach, scale=scale)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, visible: Tensor | None, *, scale: float) -> Tensor:
    added = visible if bias is None else bias
    if bias is not None and visible is not None:
        added = bias.masked_fill(~visible, -math.inf)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale)


def _eager(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    visible: Tensor | None,
    *,
    scale: float,
    encoding: PositionalEncoding,
    order: tuple[Tensor, Tensor],
) -> Tensor:
    wide = working_dtype(q)
    scores = (q.to(wide) @ k.to(wide).mT) * scale
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    weights = scores.softmax(dim=-1)
    mixed = weights @ v.to(wide)
    if encoding.claims.values:
        mixed = mixed + encoding.values(weights, *order)
    return mixed.to(q.dtype)


def _positions(
    encoding: PositionalEncoding, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor | None
) -> tuple[Tensor, Tensor]:
    axes = None if encoding.claims.ndim == 1 else encoding.claims.ndim
    batch, queries, keys = q.shape[0], q.shape[2], k.shape[2]
    p = place.check(q_positions, name="q_positions", axes=axes, batch=batch, tokens=queries, device=q.device)
    if k_positions is None:
        if queries != keys:
            raise PositionError(f"k_positions: expected those of {keys} keys, got none; there are {queries} queries")
        return p, p
    return p, place.check(k_positions, name="k_positions", axes=axes, batch=batch, tokens=keys, device=k.device)
