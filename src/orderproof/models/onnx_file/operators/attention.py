"""Attention of the standard operator sets and of com.microsoft.

The standard operators hide a key with minus infinity, after the soft cap, and a row without a key gives zeros. Those of
com.microsoft add `mask_filter_value` to scores under a mask, which is -10000 unless the file gives another number, and
hide later keys entirely, as ONNX Runtime does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.heads import joined_heads, rotated, split_heads
from orderproof.models.onnx_file.operators.indexing import written_rows
from orderproof.models.onnx_file.operators.quantization import integer_product, scaled
from orderproof.models.onnx_file.values import Value

MICROSOFT = "com.microsoft"


@operator("Attention")
def attention(call: Operation) -> list[Value]:
    """Attention of versions 23 and 24, also with a cache."""
    if call.wants(3):
        raise call.refuse("the scores as an output")
    q, k, v = (call.tensor(place) for place in range(3))
    flat = q.ndim == 3
    if flat:
        counts = (call.attribute("q_num_heads"), *[call.attribute("kv_num_heads")] * 2)
        q, k, v = (split_heads(x, count) for x, count in zip((q, k, v), counts, strict=True))
    k, v, past = _with_past(call, k, v, 4)
    mask, lengths = call.optional_tensor(3), call.optional_tensor(6)
    causal = bool(call.attribute("is_causal", 0))
    if causal and lengths is not None:
        raise call.refuse("nonpad_kv_seqlen together with is_causal")
    if mask is not None and mask.dtype is not torch.bool:
        # the finding onnxruntime_integer_mask_causal
        if not mask.is_floating_point() and (causal or lengths is not None):
            raise call.refuse("a mask of integers together with is_causal or nonpad_kv_seqlen")
        mask = mask.to(q.dtype)
    if mask is not None and mask.shape[-1] != k.shape[2]:
        fill = False if mask.dtype is torch.bool else -torch.inf
        mask = F.pad(mask, [0, k.shape[2] - mask.shape[-1]], value=fill)
    if lengths is not None:
        mask = _both(mask, torch.arange(k.shape[2]) < lengths[:, None, None, None])
    square = causal and mask is None and call.optional(4) is None
    if causal and not square:
        mask = _both(mask, _earlier(q.shape[2], k.shape[2], past))
    found = _attend(q, k, v, mask, call, causal=square)
    return [joined_heads(found) if flat else found, k, v]


def _both(mask: Tensor | None, shown: Tensor) -> Tensor:
    """A mask, Boolean or added to scores, that hides more keys."""
    if mask is None:
        return shown
    return mask & shown if mask.dtype is torch.bool else torch.where(shown, mask, -torch.inf)


def _earlier(queries: Any, keys: Any, past: Any) -> Tensor:
    """[query, key], true at keys up to the query, which comes after the past."""
    shown: Tensor = torch.arange(keys) <= torch.arange(queries)[:, None] + past
    return shown


def _with_past(call: Operation, k: Tensor, v: Tensor, place: int) -> tuple[Tensor, Tensor, Any]:
    """Keys and values after those of a cache, and the length of the cache."""
    key, value = call.optional_tensor(place), call.optional_tensor(place + 1)
    if key is None or value is None:
        return k, v, 0
    return torch.cat([key, k], 2), torch.cat([value, v], 2), key.shape[2]


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, call: Operation, *, causal: bool = False) -> Tensor:
    """Attention of torch; with a soft cap, its operators one by one."""
    cap, scale, grouped = call.attribute("softcap", 0.0), call.attribute("scale", 0.0) or None, q.shape[1] != k.shape[1]
    if not cap:
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=grouped)
    if grouped:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    mask = _earlier(q.shape[2], k.shape[2], 0) if causal else mask
    scores = torch.matmul(q, k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = torch.tanh(scores / cap) * cap
    if mask is None:
        return torch.matmul(torch.softmax(scores, -1), v)
    shown = mask if mask.dtype is torch.bool else mask > -torch.inf
    scores = torch.where(mask, scores, -torch.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.where(shown.any(-1, keepdim=True), torch.softmax(scores, -1), 0.0)
    return torch.matmul(weights, v)


@operator("Attention", domain=MICROSOFT)
def fused_attention(call: Operation) -> list[Value]:
    """Attention with its projection of queries, keys and values."""
    bias, found = call.optional_tensor(2), torch.matmul(call.tensor(0), call.tensor(1))
    found = found if bias is None else found + bias
    return _of_projected(call, found, *map(call.optional_tensor, (3, 4, 5)))


@operator("QAttention", domain=MICROSOFT)
def quantized_attention(call: Operation) -> list[Value]:
    """The same of integers, whose projections are real numbers."""
    product = integer_product(call.tensor(0), call.tensor(1), *map(call.optional_tensor, (6, 7)))
    found = scaled(product, call.tensor(3), call.tensor(4)) + call.tensor(2)
    return _of_projected(call, found, call.optional_tensor(5), call.optional_tensor(8), None)


def _of_projected(
    call: Operation, found: Tensor, mask: Tensor | None, past: Tensor | None, bias: Tensor | None
) -> list[Value]:
    """Attention of queries, keys and values [row, token, width], one after the other along the last axis."""
    for key in ("do_rotary", "past_present_share_buffer"):
        if call.attribute(key, 0):
            raise call.refuse(key)
    widths, length = call.attribute("qkv_hidden_sizes") or [found.shape[-1] // 3] * 3, 0
    q, k, v = (split_heads(part, call.attribute("num_heads")) for part in torch.split(found, widths, -1))
    if past is not None:
        k, v, length = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2), past.shape[3]
    added = _added(call, mask, bias, q, k, length)
    return [joined_heads(_attend(q, k, v, added, call)), *([torch.stack([k, v])] if call.wants(1) else [])]


@operator("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(call: Operation) -> list[Value]:
    """Attention of queries, keys and values that are projected, plus a bias of each."""
    if call.optional(1) is None or call.optional(2) is None or call.tensor(0).ndim != 3:
        raise call.refuse("queries, keys and values in one tensor")
    if any(call.optional(place) is not None for place in (8, 9)) or call.wants(3):
        raise call.refuse("a shared cache, or the scores as an output")
    heads, bias, (q, k, v) = call.attribute("num_heads"), call.optional_tensor(3), map(call.tensor, range(3))
    if bias is not None:
        if k.ndim != 3:
            raise call.refuse("a bias of keys that are split into heads")
        parts = torch.split(bias, [x.shape[-1] for x in (q, k, v)])
        q, k, v = (x + part for x, part in zip((q, k, v), parts, strict=True))
    q, k, v = (x if x.ndim == 4 else split_heads(x, heads) for x in (q, k, v))
    k, v, past = _with_past(call, k, v, 6)
    mask = _added(call, call.optional_tensor(4), call.optional_tensor(5), q, k, past)
    return [joined_heads(_attend(q, k, v, mask, call)), k, v]


def _added(call: Operation, mask: Tensor | None, bias: Tensor | None, q: Tensor, k: Tensor, past: Any) -> Tensor | None:
    """Numbers that hide keys when they are added to scores. A mask has lengths [row], or ones at shown keys."""
    value, queries, keys = call.attribute("mask_filter_value", -10000.0), q.shape[2], k.shape[2]
    shown = None
    new = (queries, keys, past)
    if call.attribute("unidirectional", 0) and all(type(n) is int for n in new) and keys != past + queries:
        raise call.refuse("unidirectional and another number of new keys than of queries")  # the last one sees all
    if mask is not None:
        if mask.ndim == 4 or (mask.ndim == 1 and mask.shape[0] != q.shape[0]):
            raise call.refuse("a mask of this shape")
        lengths = mask[:, None] if mask.ndim == 1 else None
        shown = mask > 0 if lengths is None else torch.arange(keys, dtype=mask.dtype) < lengths
        shown = shown[:, None, None, :] if shown.ndim == 2 else shown[:, None]
    added = None if shown is None else torch.where(shown, 0.0, value).to(q.dtype)
    if call.attribute("unidirectional", 0):
        later = torch.where(_earlier(queries, keys, past), 0.0, -torch.inf).to(q.dtype)
        added = later if added is None else added + later
    return added if bias is None else bias if added is None else added + bias


@operator("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(call: Operation) -> list[Value]:
    """Causal attention of heads that share keys, with a rotation, of a prompt or on a cache.

    Of a prompt, lengths of rows are not read: a query sees earlier tokens only, and pads are on the right. ONNX Runtime
    gives other outputs at pads. On a cache, the tokens of a row follow those that its length says it has.
    """
    if any(call.optional(place) is not None for place in (11, 12, 13)) or call.attribute("smooth_softmax", 0):
        raise call.refuse("a sink, or a quantized cache")
    heads, groups = call.attribute("num_heads"), call.attribute("kv_num_heads")
    x, key, value = call.tensor(0), call.optional_tensor(1), call.optional_tensor(2)
    if key is None or value is None:
        width = x.shape[-1] // (heads + 2 * groups)
        x, key, value = torch.split(x, [heads * width, groups * width, groups * width], -1)
    q, k, v = split_heads(x, heads), split_heads(key, groups), split_heads(value, groups)
    count, past = q.shape[2], call.optional_tensor(3)
    has_cache = past is not None and not (type(past.shape[2]) is int and past.shape[2] == 0)
    before = call.tensor(5).reshape(-1, 1) + 1 - count if has_cache else torch.zeros(1, 1, dtype=torch.long)
    if call.attribute("do_rotary", 0):
        positions = call.optional_tensor(9)
        if positions is None:
            positions = torch.arange(count)[None] + before if has_cache else torch.arange(count)[None]
        cos, sin = (F.embedding(positions, call.tensor(place)) for place in (7, 8))
        q, k = (rotated(call, y, cos, sin, key="rotary_interleaved") for y in (q, k))
    if has_cache:
        longer = (F.pad(call.tensor(place), [0, 0, 0, count]) for place in (3, 4))
        k, v = (written_rows(past, new, before, 2) for past, new in zip(longer, (k, v), strict=True))
    keys, query = torch.arange(k.shape[2]), torch.arange(count)[:, None]  # [row, 1, query, 1] on a cache
    query = query + before[:, None, None] if has_cache else query
    shown, window = keys <= query, call.attribute("local_window_size", -1)
    if window > 0:
        shown = shown & (keys > query - window)
    found = _attend(q, k, v, _both(call.optional_tensor(10), shown), call)
    return [joined_heads(found), k, v]
