"""Attention and rotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.sweep.draw import MICROSOFT, REAL, Call, Draw, drawn


@drawn("Attention", versions=(23, 24))
def standard(draw: Draw) -> Call:
    """Heads that share keys, flat inputs, a cache or lengths of rows, masks, a soft cap and a causal flag."""
    rows, queries, past, width = draw.size(1), draw.size(1), draw.size(), draw.size(1)
    heads, groups, cache = 4, draw.pick(1, 2, 4), draw.flag()
    new = queries if cache else draw.size(1)
    total, flat = new + past * cache, draw.flag()
    q = draw.tensor(rows, heads, queries, width, of="T1")
    k, v = draw.tensor(rows, groups, new, width, of="T1"), draw.tensor(rows, groups, new, width, of="T2")
    if flat:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(rows, x.shape[2], -1) for x in (q, k, v))
    shape = draw.pick((queries, total), (rows, 1, queries, total), (rows, heads, queries, total))
    mask = draw.maybe(draw.tensor(*shape, of="U"))
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": groups} if flat else {}
    attributes |= draw.some(softcap=0.7, scale=0.3)
    caches = [draw.tensor(rows, groups, past, width, of=of) if cache else None for of in ("T1", "T2")]
    lengths = draw.maybe(draw.integers(1, total, rows)) if draw.version >= 24 and not cache else None
    attributes |= {} if lengths is not None else draw.some(is_causal=draw.flag())
    return Call([q, k, v, mask, *caches, lengths], attributes, ("y", "key", "value") if cache else ("y",))


def _mask(draw: Draw, rows: int, queries: int, keys: int) -> Array | None:
    """None, lengths of rows, shown keys, or shown keys of each query: -10000 would leave few digits of a score."""
    lengths = draw.random.integers(1, keys + 1, rows)
    each = np.maximum(draw.random.integers(0, 2, (rows, queries, keys)), np.arange(keys) == 0)
    form = draw.pick(None, lengths, np.arange(keys) < lengths[:, None], each)
    return None if form is None else form.astype(np.int32)


def _options(draw: Draw, heads: int) -> dict[str, Any]:
    return {"num_heads": heads, "unidirectional": draw.flag(), **draw.some(scale=0.3, mask_filter_value=-5.0)}


@drawn("Attention", domain=MICROSOFT, types={"T": REAL, "M": ("int32",)})
def projected(draw: Draw) -> Call:
    """Attention with its projection, a mask of each form, a cache and a bias of scores."""
    rows, tokens, past, width, inner = (draw.size(1) for _ in range(5))
    heads, cache = 2, draw.flag()
    total, hidden = tokens + past * cache, 2 * width
    arrays = [draw.tensor(rows, tokens, inner), draw.tensor(inner, 3 * hidden), draw.tensor(3 * hidden)]
    arrays += [_mask(draw, rows, tokens, total), draw.tensor(2, rows, heads, past, width) if cache else None]
    arrays += [None if cache else draw.maybe(draw.tensor(rows, heads, tokens, total))]
    return Call(arrays, _options(draw, heads), ("y", "present") if cache else ("y",), draw.pick((), (1, 2)))


@drawn("MultiHeadAttention", domain=MICROSOFT, types={"T": REAL, "M": ("int32",)})
def multi_head(draw: Draw) -> Call:
    """Attention of projected queries, keys and values."""
    rows, queries, past, width = (draw.size(1) for _ in range(4))
    heads, cache = 2, draw.flag()
    new = queries if cache else draw.size(1)
    total = new + past * cache
    arrays: list[Array | None] = [draw.tensor(rows, n, heads * width) for n in (queries, new, new)]
    arrays += [draw.maybe(draw.tensor(3 * heads * width)), _mask(draw, rows, queries, total)]
    arrays += [draw.maybe(draw.tensor(draw.pick(1, rows), heads, queries, total))]
    arrays += [draw.tensor(rows, heads, past, width) for _ in range(2)] if cache else []
    return Call(arrays, _options(draw, heads), ("y", "key", "value") if cache else ("y",))


@drawn("GroupQueryAttention", domain=MICROSOFT, types={"T": REAL, "M": ("int32",)})
def grouped(draw: Draw) -> Call:
    """Of a prompt whose rows have one length: heads that share keys, rotated or not, a window, a soft cap or a bias."""
    rows, tokens, heads, groups, width = draw.size(1), draw.size(1), 4, draw.pick(1, 2, 4), 16
    qkv = [draw.tensor(rows, tokens, n * width) for n in (heads, groups, groups)]
    arrays: list[Array | None] = draw.pick([np.concatenate(qkv, -1), None, None], qkv)
    empty = draw.tensor(rows, groups, 0, width)
    arrays = [*arrays, *draw.pick((empty, empty), (None, None))]
    arrays += [np.full(rows, tokens - 1, np.int32), np.array(tokens, np.int32)]
    turned = draw.flag()
    arrays += [draw.tensor(9, width // 2), draw.tensor(9, width // 2)] if turned else [None, None]
    arrays += [None, draw.maybe(draw.tensor(1, 1, tokens, tokens))]
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": turned}
    attributes |= draw.some(rotary_interleaved=1) if turned else {}
    attributes |= draw.pick({}, {"local_window_size": 2}, {"softcap": 0.7}, {"scale": 0.3})
    return Call(arrays, attributes, ("y", "key", "value"))


@drawn("RotaryEmbedding")
@drawn("RotaryEmbedding", domain=MICROSOFT, types={"T": REAL, "M": ("int64",)})
def rotation(draw: Draw) -> Call:
    """All of a head or a part of it, pairs of neighbours or of halves, tables of positions or of tokens."""
    rows, tokens, heads, width, fused = draw.size(1), draw.size(1), draw.size(1), 8, draw.domain == MICROSOFT
    part, flat = draw.pick(0, 4), draw.flag()
    pairs = (part or width) // 2
    x = draw.tensor(rows, tokens, heads * width) if flat else draw.tensor(rows, heads, tokens, width)
    attributes: dict[str, Any] = {"interleaved": draw.flag()}
    attributes |= {"num_heads": heads} if flat or part else {}
    attributes |= {"rotary_embedding_dim": part} if part else {}
    given = fused or draw.flag()
    positions = draw.integers(0, 8, rows, tokens)
    if fused and draw.flag():
        positions = np.array([2])
    shape = (9, pairs) if given else (rows, tokens, pairs)
    tables = [draw.tensor(*shape), draw.tensor(*shape)]
    return Call([x, positions, *tables] if fused else [x, *tables, positions if given else None], attributes)
