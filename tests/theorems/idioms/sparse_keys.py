"""Keys that are selected by scores, blocks or places, in other shapes: one function for each module."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.idioms.idiom import Idiom, hidden, of

LOW = torch.finfo(torch.float32).min


def masked(m: Any, x: Tensor, fill: float = -math.inf, diagonal: int = 1) -> Tensor:
    """Causal scores."""
    return m.scores(x).masked_fill(hidden(x, diagonal), fill)


def threshold(m: Any, x: Tensor, fill: float = LOW) -> Tensor:
    """Scores below the second largest get the least number of the dtype."""
    s = masked(m, x, fill)
    kth = s.topk(2, dim=-1)[0].min(dim=-1, keepdim=True)[0]
    return torch.where(s < kth, torch.full_like(s, fill), s).softmax(-1) @ m.v(x)


def sorted_threshold(m: Any, x: Tensor) -> Tensor:
    """The threshold by a sort."""
    s = masked(m, x)
    kth = s.sort(dim=-1, descending=True).values[..., 1:2]
    return s.masked_fill(~(s >= kth), -math.inf).softmax(-1) @ m.v(x)


def index_mask(m: Any, x: Tensor, *, early: bool = True) -> Tensor:
    """A mask of -inf with zeros at the keys that an index selects, as of sparse attention with an indexer."""
    causal = torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)
    index = m.q(x) @ m.v(x).mT
    places = (index + causal if early else index).topk(2, dim=-1)[1]
    bias = torch.full_like(index, -math.inf).scatter_(-1, places, 0)
    bias = bias + causal if early else bias
    return (m.scores(x) + bias).softmax(-1) @ m.v(x)


def ones_mask(m: Any, x: Tensor) -> Tensor:
    """Ones at the places of the largest scores."""
    s = masked(m, x, -1e9)
    keep = torch.zeros_like(s, dtype=torch.bool).scatter(-1, s.topk(2, -1).indices, True)
    return s.masked_fill(~keep, -1e9).softmax(-1) @ m.v(x)


def top_weights(m: Any, x: Tensor) -> Tensor:
    """The largest weights after the softmax, normalized again."""
    w = masked(m, x).softmax(-1)
    kept = w * (w >= w.topk(2, -1).values[..., -1:])
    return kept / kept.sum(-1, keepdim=True).clamp(min=1e-6) @ m.v(x)


def gathered_top(m: Any, x: Tensor, fill: float = -math.inf) -> Tensor:
    """Values of the two best keys, weighted by a softmax of their scores."""
    top = masked(m, x, fill).topk(2, dim=-1)
    values = m.v(x)[:, None].expand(-1, x.shape[1], -1, -1)
    chosen = values.gather(2, top.indices[..., None].expand(-1, -1, -1, x.shape[2]))
    return (top.values.softmax(-1)[..., None] * chosen).sum(2)


def hard_attention(m: Any, x: Tensor, diagonal: int = 1) -> Tensor:
    """The weight one for the best key."""
    best = masked(m, x, -math.inf, diagonal).argmax(-1)
    return F.one_hot(best, x.shape[1]).to(x.dtype) @ m.v(x)


def straight_through(m: Any, x: Tensor) -> Tensor:
    """A hard weight with the gradient of a soft one."""
    s = masked(m, x)
    soft = s.softmax(-1)
    hard = torch.zeros_like(soft).scatter(-1, soft.max(-1, keepdim=True)[1], 1.0)
    return (hard - soft.detach() + soft) @ m.v(x)


def local_blocks(m: Any, x: Tensor, ahead: int = 0) -> Tensor:
    """Each block of four sees itself and the one before."""
    i = torch.arange(x.shape[1])
    gap = i[:, None] // 4 - i[None, :] // 4
    seen = (gap >= -ahead) & (gap <= 1) & ~hidden(x, 1 + 4 * ahead)
    return m.scores(x).masked_fill(~seen, LOW).softmax(-1) @ m.v(x)


def strided(m: Any, x: Tensor) -> Tensor:
    """Every fourth key, and the three before."""
    i = torch.arange(x.shape[1])
    gap = i[:, None] - i[None, :]
    seen = (gap >= 0) & ((gap < 4) | (gap % 4 == 0))
    return m.scores(x).masked_fill(~seen, -math.inf).softmax(-1) @ m.v(x)


def hashed(m: Any, x: Tensor, *, causal: bool = True) -> Tensor:
    """Keys in the bucket of the query, and the token itself."""
    bucket = m.q(x).argmax(-1)
    same = bucket[:, :, None] == bucket[:, None, :]
    seen = (same & ~hidden(x)) if causal else same
    seen = seen | torch.eye(x.shape[1], dtype=torch.bool)
    return m.scores(x).masked_fill(~seen, LOW).softmax(-1) @ m.v(x)


def sinks(m: Any, x: Tensor) -> Tensor:
    """The first two tokens and a window."""
    i = torch.arange(x.shape[1])
    seen = ((i[None, :] < 2) | (i[:, None] - i[None, :] < 4)) & (i[None, :] <= i[:, None])
    return m.scores(x).masked_fill(~seen, -math.inf).softmax(-1) @ m.v(x)


def rolled(m: Any, x: Tensor, shift: int = 1) -> Tensor:
    """The token before, by a roll whose first element is replaced."""
    before = m.v(x).roll(shift, dims=1)
    before[:, 0] = 0
    return x + before


def written_later(m: Any, x: Tensor) -> Tensor:
    """Tokens written one place later."""
    out = torch.zeros_like(x)
    out[:, 1:] = m.v(x)[:, :-1]
    return x + out


def placed(m: Any, x: Tensor) -> Tensor:
    """Tokens written to a range of places."""
    out = torch.zeros_like(x).index_copy(1, torch.arange(x.shape[1]), m.v(x))
    return x + out


def group_totals(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """The total of the real and of the padded tokens."""
    totals = torch.zeros_like(x[:, :2]).scatter_add(1, mask[..., None].expand_as(x), m.v(x))
    return x + totals[:, 1:]


def quadratic(m: Any, x: Tensor) -> Tensor:
    """Each token's own score by einsum."""
    return x * torch.einsum("bid,bid->bi", m.q(x), m.k(x))[..., None] + torch.einsum("bii->bi", m.scores(x))[..., None]


IDIOMS = {
    "least number below the second largest": Idiom(of(threshold)),
    "threshold by a sort": Idiom(of(sorted_threshold)),
    "mask of an index": Idiom(of(index_mask), of(lambda m, x: index_mask(m, x, early=False))),
    "mask of ones": Idiom(of(ones_mask)),
    "largest weights": Idiom(of(top_weights)),
    "best keys weighted": Idiom(of(gathered_top), of(lambda m, x: gathered_top(m, x, 0.0))),
    "one best key": Idiom(of(hard_attention), of(lambda m, x: hard_attention(m, x, 2))),
    "straight through": Idiom(of(straight_through)),
    "blocks": Idiom(of(local_blocks), of(lambda m, x: local_blocks(m, x, 1))),
    "strides": Idiom(of(strided)),
    "buckets": Idiom(of(hashed), of(lambda m, x: hashed(m, x, causal=False))),
    "first tokens and a window": Idiom(of(sinks)),
    "token before by roll": Idiom(of(rolled), of(lambda m, x: rolled(m, x, -1))),
    "token before by a write": Idiom(of(written_later)),
    "index_copy at its own place": Idiom(of(placed)),
    "totals of real tokens": Idiom(of(group_totals), law="padding", masked=True),
    "totals of real tokens, permuted": Idiom(of(group_totals), law="permutation", masked=True),
    "own scores, permuted": Idiom(of(quadratic), law="permutation"),
}
