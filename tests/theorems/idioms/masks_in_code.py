"""Masks as code makes them: by comparison, by padding, by sums, in several dtypes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.idioms.idiom import WIDTH, Idiom, hidden, of

LOW = torch.finfo(torch.float32).min


def attend(m: Any, x: Tensor, bias: Tensor) -> Tensor:
    """Attention with a mask that is added."""
    return (m.scores(x) + bias).softmax(-1) @ m.v(x)


def by_tri(m: Any, x: Tensor, diagonal: int = 0) -> Tensor:
    """Zeros and ones of a stored triangle, and a large number."""
    n = x.shape[1]
    lower = m.triangle[:n, :n].tril(diagonal) if diagonal <= 0 else torch.ones(n, n).tril(diagonal)
    return (m.scores(x) * lower - 1e10 * (1 - lower)).softmax(-1) @ m.v(x)


def expanded(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """1 - mask times the least number, plus a causal one: clamped to it."""
    pads = (1.0 - mask[:, None, :].to(x.dtype)) * LOW
    return attend(m, x, (pads + torch.full((x.shape[1], x.shape[1]), LOW).triu(1)).clamp(min=LOW))


def minimum(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """The smaller of two masks."""
    causal = torch.zeros(x.shape[1], x.shape[1]).masked_fill(hidden(x), LOW)
    return attend(m, x, torch.minimum(causal, (1 - mask[:, None, :]).to(x.dtype) * LOW))


def where_bias(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """`where` of booleans of both."""
    seen = mask[:, None, :].bool() & ~hidden(x)
    return attend(m, x, torch.where(seen, 0.0, LOW))


def log_mask(m: Any, x: Tensor) -> Tensor:
    """The logarithm of zeros and ones."""
    return attend(m, x, torch.ones(x.shape[1], x.shape[1]).tril().log())


def times_mask(m: Any, x: Tensor, mask: Tensor, least: float | None = None) -> Tensor:
    """Pads are taken out of the weights, which are normalized again: by their sum, or a number that pads decide."""
    w = m.scores(x).masked_fill(hidden(x), -math.inf).softmax(-1) * mask[:, None, :]
    total = w.sum(-1, keepdim=True)
    return w / (total if least is None else total.clamp(min=least)) @ m.v(x)


def fused(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """Fused attention with a mask of booleans, of several heads."""
    q, k, v = (f(x).view(*x.shape[:2], 2, WIDTH // 2).transpose(1, 2) for f in (m.q, m.k, m.v))
    seen = (mask[:, None, None, :].bool() & ~hidden(x)) | torch.eye(x.shape[1], dtype=torch.bool)
    return m.o(F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2))


def bits(m: Any, x: Tensor) -> Tensor:
    """Positions whose lower bits are zero are seen."""
    i = torch.arange(x.shape[1])
    seen = (i[None, :] <= i[:, None]) & (((i[None, :] & 3) == 0) | (i[None, :] == i[:, None]))
    return m.scores(x).masked_fill(~seen, -math.inf).softmax(-1) @ m.v(x)


def floats(m: Any, x: Tensor) -> Tensor:
    """Distances as floats, as of a linear bias, with -inf ahead."""
    t = torch.arange(x.shape[1]).float()
    gap = t[None, :] - t[:, None]
    return attend(m, x, torch.where(gap > 0, -math.inf, 0.1 * gap))


def double(m: Any, x: Tensor) -> Tensor:
    """The mask in float64, converted."""
    return attend(m, x, torch.full((x.shape[1], x.shape[1]), -math.inf, dtype=torch.float64).triu(1).to(x.dtype))


def small_mask(m: Any, x: Tensor) -> Tensor:
    """A mask of -1e4 for scores of normalized queries and keys."""
    q, k = F.normalize(m.q(x), dim=-1), F.normalize(m.k(x), dim=-1)
    return (q @ k.mT).masked_fill(hidden(x), -1e4).softmax(-1) @ m.v(x)


def cumulative(m: Any, x: Tensor) -> Tensor:
    """A triangle as a running sum of the identity."""
    seen = torch.eye(x.shape[1]).cumsum(0)
    return m.scores(x).masked_fill(seen == 0, -math.inf).softmax(-1) @ m.v(x)


def gated(m: Any, x: Tensor) -> Tensor:
    """Decays between tokens, as exponentials of sums that are masked."""
    s = F.logsigmoid(m.k(x)).cumsum(1).sum(-1)
    gap = (s[:, :, None] - s[:, None, :]).masked_fill(hidden(x), -math.inf).exp()
    return (m.scores(x) * gap) @ m.v(x)


def pad_to_front(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """Real tokens sorted to the front, a mean, and back."""
    order = mask.argsort(dim=1, descending=True, stable=True)
    front = x.gather(1, order[..., None].expand_as(x))
    keep = mask.gather(1, order)[..., None]
    mean = (front * keep).sum(1, keepdim=True) / keep.sum(1, keepdim=True).clamp(min=1)
    return x + mean


def last_real(m: Any, x: Tensor, mask: Tensor) -> Tensor:
    """The last real token, added to each."""
    last = (mask * torch.arange(x.shape[1])).argmax(1)
    return m.v(x[torch.arange(x.shape[0]), last])[:, None] + x


IDIOMS = {
    "times a triangle": Idiom(of(by_tri), of(lambda m, x: by_tri(m, x, 1))),
    "clamped sum of masks": Idiom(of(expanded), masked=True),
    "clamped sum of masks, padding": Idiom(of(expanded), law="padding", masked=True),
    "smaller of two masks": Idiom(of(minimum), masked=True),
    "smaller of two masks, padding": Idiom(of(minimum), law="padding", masked=True),
    "where of booleans": Idiom(of(where_bias), masked=True),
    "logarithm of a triangle": Idiom(of(log_mask)),
    "weights times a mask": Idiom(
        of(times_mask), of(lambda m, x, mask: times_mask(m, x, mask, 1e-9)), law="padding", masked=True
    ),
    "fused, with the token itself": Idiom(of(fused), masked=True),
    "lower bits": Idiom(of(bits)),
    "distances as floats": Idiom(of(floats)),
    "mask in float64": Idiom(of(double)),
    "-1e4 for normalized keys": Idiom(of(small_mask)),
    "running sum of the identity": Idiom(of(cumulative)),
    "decays by sums": Idiom(of(gated)),
    "real tokens sorted to the front": Idiom(of(pad_to_front), law="padding", masked=True),
    "last real token": Idiom(of(last_real), law="padding", masked=True),
}
