"""Attention with any encoding and backend; all backends agree up to rounding.

    score[m, n] = scale * (R(m) q[m]) . (R(n) k[n]) + b(m, n)          where key n is visible to query m
    out[m]      = sum_n softmax(score[m])[n] v[n]

With a soft cap c, scale * (q . k) becomes c tanh(scale * (q . k) / c) before the bias is added. With a sink s per head,
weights are exp(score[m, n]) / (exp(s) + sum_n exp(score[m, n])): a query may attend to nothing.

R is the encoding's rotation and b its bias, if it has one. `visibility_mask` defines which keys are visible.
The output of a query without visible keys (a pad token on the left of a causal row) is zero.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.1; soft cap: Gemma Team 2024,
"Gemma 2", arXiv:2408.00118, section 2; sinks: OpenAI 2025, "gpt-oss", arXiv:2508.10925, section 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.encodings import _toeplitz_attention
from orderproof.encodings._encoding import AttentionContent, PositionalEncoding
from orderproof.encodings._flex_attention import flex_attention_with_bias
from orderproof.encodings._relative_bias import RelativeBias
from orderproof.encodings.attention_arguments import (
    AttentionBackend,
    check_encoding,
    check_operands,
    check_options,
    check_sinks,
)
from orderproof.encodings.checks import in_transform, needs_plain_derivatives, working_dtype
from orderproof.encodings.packed_documents import check_causal_positions, check_document_ids
from orderproof.encodings.visibility_mask import check_masks, visibility_mask
from orderproof.errors import PositionError, UsageError
from orderproof.positions import validate as validate_positions

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
    q_document_ids: Int[Tensor, "*batch query"] | None = None,
    k_document_ids: Int[Tensor, "*batch key"] | None = None,
    padding_mask: Bool[Tensor, "batch key"] | None = None,
    mask: Bool[Tensor, "*batch_and_head query key"] | None = None,
    token_state: Float[Tensor, "batch head key state"] | None = None,
    lengths: Int[Tensor, " batch"] | int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, " head"] | None = None,
    dropout: float = 0.0,
    backend: AttentionBackend = "sdpa",
) -> Float[Tensor, "batch head query value_width"]:
    """Attend from each query to the keys visible to it.

    Positions are integers, [token] or [batch, token], with a leading dimension for encodings of several axes;
    ``k_positions`` defaults to ``q_positions``. ``window`` (back, ahead) limits visibility to keys at most that many
    positions before and after the query. ``q_document_ids`` and ``k_document_ids`` are the documents of packed rows
    (see `positions.document_ids`): a query sees only keys of its own document; ``k_document_ids`` defaults to
    ``q_document_ids``. ``padding_mask`` is True at real keys. ``mask``, of shape [query, key], [batch, query, key] or
    [batch, head, query, key], is True where a query may attend to a key, and narrows the rest further.

    Causal order is defined by positions, so key positions that restart among the visible keys of a query raise
    `PositionError` (on a GPU and while tracing, torch asserts it; with a ``mask`` it is then not checked).

    ``token_state`` is the encoding's `token_state` of the keys' tokens, and ``lengths`` the context length of each row
    [tokens]; both only for encodings whose claims require them. ``scale`` defaults to the encoding's own, mostly
    1 / sqrt(head_width). With fewer key heads than query heads, neighbouring query heads share a key head.

    ``softcap`` limits scores (not the bias), and ``sinks`` has a score per query head for attending to nothing; torch's
    fused kernels have neither, so "eager" is used for every backend. ``dropout`` is the probability with which a weight
    is set to zero, with the others divided by 1 - dropout; pass 0 in evaluation. "eager" is used instead of "flex".

    Backend "flex" is FlexAttention: it has no gradient on the CPU and no second derivatives, cannot be transformed by
    torch.func, and rounds a bias that does not depend on content to float32. An encoding that adds to the values needs
    attention weights, which only "eager" computes: it is then used for every backend.

    Backend "eager" has all derivatives, of any order, in reverse and in forward mode. "sdpa" has first derivatives in
    reverse mode; inside transforms of torch.func that need more (jvp, hessian, nested grad), and inside all of them
    with a bias that is learned or depends on content, "eager" is used for it.
    A second backward pass through "sdpa" is right, or torch refuses it: "derivative for ... is not implemented".

    Raises `UsageError`, `EncodingError` or `PositionError` for arguments that do not fit.
    """
    check_options(causal=causal, window=window, scale=scale, softcap=softcap, dropout=dropout, backend=backend)
    check_operands(q, k, v)
    check_sinks(sinks, q)
    check_encoding(encoding, q, causal=causal, token_state=token_state, lengths=lengths, softcap=softcap)
    batch, heads, queries, keys = *q.shape[:3], k.shape[2]
    check_masks(padding_mask, mask, batch=batch, heads=heads, queries=queries, keys=keys, device=q.device)
    document_ids = check_document_ids(
        q_document_ids, k_document_ids, batch=batch, queries=queries, keys=keys, device=q.device
    )
    p, s = _check_positions(encoding, q, k, q_positions, k_positions)
    scale = encoding.default_scale(q.shape[-1]) if scale is None else scale
    backend = _backend_in_transform(backend, encoding)
    if softcap is not None or sinks is not None or (dropout and backend == "flex") or encoding.claims.adds_to_values:
        backend = "eager"

    content_q, content_k = q, k
    if encoding.claims.site == "rotate":
        q, k = encoding.rotate(q, k, p, s) if lengths is None else encoding.rotate(q, k, p, s, lengths=lengths)
    if k.shape[1] != heads:
        k, v, content_k = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v, content_k))

    positions = (p, s) if encoding.claims.ndim == 1 else (p[0], s[0])
    only_distances = document_ids is None and padding_mask is None and mask is None
    if backend == "sdpa" and only_distances and not dropout and not in_transform():
        mixed = _toeplitz_attention_or_none(q, k, v, encoding, positions, causal=causal, window=window, scale=scale)
        if mixed is not None:
            return mixed
    visible = visibility_mask(
        *positions, causal=causal, window=window, document_ids=document_ids, padding_mask=padding_mask, mask=mask
    )
    if causal:
        checked_mask = None if mask is None else visible
        check_causal_positions(
            s, axes=encoding.claims.ndim, document_ids=document_ids, padding_mask=padding_mask, visible=checked_mask
        )
    bias = None
    uses_score_mod = backend == "flex" and not (encoding.claims.content_dependent or encoding.claims.adds_to_values)
    if encoding.claims.site == "bias" and not uses_score_mod:
        content = None
        if encoding.claims.content_dependent:
            content = AttentionContent(q=content_q, k=content_k, scale=scale, visible=visible, token_state=token_state)
        bias = encoding.bias(p, s, content=content, dtype=working_dtype(q))
    sees_nothing = None
    if visible is not None and any(x is not None for x in (document_ids, padding_mask, mask, window)):
        sees_nothing = ~visible.any(dim=-1, keepdim=True)
        visible = visible | sees_nothing
    if backend == "eager":
        mixed = _eager(
            q, k, v, bias, visible, encoding=encoding, positions=(p, s), scale=scale, softcap=softcap, sinks=sinks,
            dropout=dropout,
        )  # fmt: skip
    elif backend == "flex":
        score_mod = encoding.score_mod(p, s) if encoding.claims.site == "bias" and bias is None else None
        mixed = flex_attention_with_bias(q, k, v, bias, visible, score_mod=score_mod, scale=scale)
    else:
        mixed = _sdpa(q, k, v, bias, visible, scale=scale, dropout=dropout)
    return mixed if sees_nothing is None else mixed.masked_fill(sees_nothing, 0.0)


def _backend_in_transform(backend: AttentionBackend, encoding: PositionalEncoding) -> AttentionBackend:
    """The backend, or one with the derivatives that a transform of torch.func needs.

    torch's fused kernel on the CPU has no gradient of a bias. Outside of a transform, torch sees that the bias requires
    one and takes another kernel; a transform hides it.
    """
    if not in_transform():
        return backend
    if backend == "flex":
        raise UsageError("backend: 'flex' cannot be transformed by torch.func; use 'sdpa' or 'eager'")
    claims = encoding.claims
    learned = claims.site == "bias" and (claims.content_dependent or next(encoding.parameters(), None) is not None)
    return "eager" if learned or needs_plain_derivatives() else backend


def _toeplitz_attention_or_none(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    positions: tuple[Tensor, Tensor],
    *,
    causal: bool,
    window: tuple[int, int] | None,
    scale: float,
) -> Tensor | None:
    """Attention without a dense mask or bias matrix; None if the positions or the encoding require one."""
    if not isinstance(encoding, RelativeBias) and (encoding.claims.site == "bias" or not (causal or window)):
        return None
    distances = _toeplitz_attention.distance_window(*positions, causal=causal, sliding_window=window)
    if distances is None:
        return None
    queries, keys = q.shape[2], k.shape[2]
    first, last = _toeplitz_attention.distance_range(distances, queries, keys)
    if isinstance(encoding, RelativeBias):
        vector = encoding.bias_for_distances(first, last, dtype=working_dtype(q), device=q.device)
    elif not distances.masks_any(queries, keys):
        return functional.scaled_dot_product_attention(q, k, v, scale=scale)
    elif window is None and queries == keys and distances.offset == 0:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    else:
        vector = torch.zeros(1, last - first + 1, dtype=q.dtype, device=q.device)
    return _toeplitz_attention.toeplitz_attention(q, k, v, vector, distances, scale=scale)


def _sdpa(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, visible: Tensor | None, *, scale: float, dropout: float
) -> Tensor:
    attn_mask = visible if bias is None else bias
    if bias is not None and visible is not None:
        attn_mask = bias.masked_fill(~visible, -math.inf)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, dropout_p=dropout, scale=scale)


def _eager(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    visible: Tensor | None,
    *,
    encoding: PositionalEncoding,
    positions: tuple[Tensor, Tensor],
    scale: float,
    softcap: float | None,
    sinks: Tensor | None,
    dropout: float,
) -> Tensor:
    compute_dtype = working_dtype(q)
    scores = (q.to(compute_dtype) @ k.to(compute_dtype).mT) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    if sinks is None:
        weights = scores.softmax(dim=-1)
    else:
        nothing = sinks.to(compute_dtype).view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, nothing], dim=-1).softmax(dim=-1)[..., :-1]
    if dropout:
        weights = functional.dropout(weights, dropout)
    mixed = weights @ v.to(compute_dtype)
    if encoding.claims.adds_to_values:
        mixed = mixed + encoding.value_bias(weights, *positions)
    return mixed.to(q.dtype)


def _check_positions(
    encoding: PositionalEncoding, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor | None
) -> tuple[Tensor, Tensor]:
    axes = None if encoding.claims.ndim == 1 else encoding.claims.ndim
    batch, queries, keys = q.shape[0], q.shape[2], k.shape[2]
    p = validate_positions(q_positions, name="q_positions", axes=axes, batch=batch, tokens=queries, device=q.device)
    if k_positions is None:
        if queries != keys:
            raise PositionError(f"k_positions: expected positions of {keys} keys, got none for {queries} queries")
        return p, p
    return p, validate_positions(k_positions, name="k_positions", axes=axes, batch=batch, tokens=keys, device=k.device)
