"""Heads of attention, and the rotation of queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.values import Value


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[row, token, head * width] to [row, head, token, width]."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)


def joined_heads(x: Tensor) -> Tensor:
    """[row, head, token, width] to [row, token, head * width]."""
    return x.transpose(1, 2).flatten(2)


@operator("RotaryEmbedding")
def rotary(call: Operation) -> Value:
    """Queries or keys rotated by angles, whose cosines and sines are given for positions or for tokens."""
    cos, sin, positions = call.tensor(1), call.tensor(2), call.optional_tensor(3)
    if positions is not None:
        cos, sin = F.embedding(positions, cos), F.embedding(positions, sin)
    return rotated(call, call.tensor(0), cos, sin)


@operator("RotaryEmbedding", domain="com.microsoft")
def fused_rotary(call: Operation) -> Value:
    """The same, with other places of the inputs; one position is that of the first token of every row."""
    x, positions, cos, sin = (call.tensor(place) for place in range(4))
    if call.attribute("scale", 1.0) != 1 or call.attribute("is_packed_batching", 0):
        raise call.refuse("a scale or a packed batch")
    if positions.numel() == 1:
        positions = (positions.reshape(1, 1) + torch.arange(x.shape[-2])).expand(x.shape[0], -1)
    return rotated(call, x, F.embedding(positions, cos), F.embedding(positions, sin))


def rotated(call: Operation, x: Tensor, cos: Tensor, sin: Tensor, *, key: str = "interleaved") -> Tensor:
    """Heads rotated by angles [row, token, pair]; an attribute says that neighbours are pairs, not halves."""
    flat, heads = x.ndim == 3, call.attribute("num_heads", 0)
    if flat:
        x = split_heads(x, heads or x.shape[-1] // (2 * cos.shape[-1]))
    count = call.attribute("rotary_embedding_dim", 0) or x.shape[-1]
    turned, rest = x[..., :count], x[..., count:]
    cos, sin = cos[:, None], sin[:, None]  # [row, head, token, pair]
    if call.attribute(key, 0):
        a, b = turned[..., 0::2], turned[..., 1::2]
        found = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    else:
        a, b = turned.chunk(2, -1)
        found = torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
    found = torch.cat([found, rest], -1) if count != x.shape[-1] else found
    return joined_heads(found) if flat else found
