"""Random programs of few steps over tensors [batch, token, WIDTH], most of which fulfil some law and break another."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Program

Step = Callable[[Program, Tensor, Tensor, int], Tensor]  # module, state, attention mask, a number from 1 to 8


def _indices(x: Tensor) -> tuple[Tensor, Tensor]:
    i = torch.arange(x.shape[1])
    return i[:, None], i


def _write(h: Tensor, k: int, values: Tensor) -> Tensor:
    written = h.clone()
    written[:, k % 2 :] = values[:, : h.shape[1] - k % 2]
    return written


def _write_row(h: Tensor, values: Tensor) -> Tensor:
    written = h.clone()
    written.transpose(0, 1)[0] += values
    return written


def _visible(h: Tensor, mask: Tensor, kind: str, k: int) -> Tensor:
    i, j = _indices(h)
    own = i == j
    return {
        "lower": j <= i,
        "strict": (j < i) | own,
        "ahead": j <= i + k % 3 - 1,
        "window": (j <= i) & (j > i - k),
        "distant": ((j <= i - k) | own) & (i >= 0),
        "chunk": (j <= i) & (i // k == j // k),
        "block": i // k == j // k,
        "stride": (j <= i) & ((i - j) % k == 0),
        "even": (j % 2 == 0) | own,
        "late": (j <= i) | (i >= 3 * k),
        "upper": j >= i,
        "real": mask[:, None, :].bool() | own,
        "real and lower": mask[:, None, :].bool() & (j <= i),
        "real only": mask[:, None, :].bool(),
        "same kind": mask[:, None, :] == mask[:, :, None],
        "tril": torch.ones(h.shape[1], h.shape[1]).tril(k % 4 - 2).bool() | own,
        "first": (j < k) & (j <= i),
        "first or real": (j < k) | mask[:, None, :].bool(),
    }[kind]


def _attention(kind: str) -> Step:
    def step(m: Program, h: Tensor, mask: Tensor, k: int) -> Tensor:
        visible = _visible(h, mask, kind, k)
        q, key, v = m.first(h), m.second(h), m.third(h)
        if k % 4 == 0:
            return F.scaled_dot_product_attention(q, key, v, attn_mask=visible)
        fill = (0.0, -1e9, float("-inf"), torch.finfo(torch.float32).min)[k % 4]
        scores = q @ key.mT / WIDTH**0.5
        if k > 4:
            return (scores + torch.where(visible, 0.0, fill)).softmax(-1) @ v
        return scores.masked_fill(~visible, fill).softmax(-1) @ v

    return step


def _heads(m: Program, h: Tensor, mask: Tensor, k: int) -> Tensor:
    rows, tokens, _ = h.shape
    count = 2 + k % 2
    q, key, v = (f(h).view(rows, tokens, count, -1).transpose(1, 2) for f in (m.first, m.second, m.third))
    found = F.scaled_dot_product_attention(q, key, v, is_causal=k % 2 == 0)
    return (found.transpose(1, 2) if k < 5 else found.permute(0, 2, 1, 3)).reshape(h.shape)


def _padded_mean(h: Tensor, k: int) -> Tensor:
    return F.pad(h, (0, 0, k, 0)).unfold(1, k + 1, 1).mean(-1)


def _of_matrix(h: Tensor, k: int, *, lower: bool) -> Tensor:
    matrix = torch.rand(1, generator=torch.Generator().manual_seed(k)).item() + torch.zeros(h.shape[1], h.shape[1])
    return (matrix.tril(k % 3 - 1) if lower else matrix.triu(k % 3 - 1)).to(h.dtype) @ h


def _merged(m: Program, h: Tensor, k: int) -> Tensor:
    rows, tokens, _ = h.shape
    flat = h.reshape(rows * tokens, WIDTH)
    if k % 2:
        flat = flat.view(-1, 2, WIDTH // 2).flip(1).reshape(-1, WIDTH)
    return m.first(flat).view(rows, tokens, WIDTH)


def _experts(m: Program, h: Tensor, k: int) -> Tensor:
    chosen = m.first(h).topk(1 + k % 3, dim=-1).indices
    return h + m.table(chosen).sum(2)


def _scattered(h: Tensor, k: int) -> Tensor:
    places = (torch.arange(h.shape[1]) - k).clamp(min=0)
    dim = 1 if k % 2 else 2
    at = places[None, :, None].expand(h.shape) if dim == 1 else torch.arange(WIDTH).flip(0).expand(h.shape)
    return torch.zeros_like(h).scatter_add(dim, at, h) if k < 5 else h.gather(dim, at)


def _asks(m: Program, h: Tensor, mask: Tensor, k: int) -> Tensor:
    asked = (mask.bool() if k % 2 else mask[:, : -(k // 2)].bool()).all()
    return h if bool(asked) else _attention("real and lower")(m, h, mask, 1 + k % 3)


_KINDS = [
    "lower", "strict", "ahead", "window", "distant", "chunk", "block", "stride", "even", "late", "upper", "real",
    "real and lower", "real only", "same kind", "tril", "first", "first or real",
]  # fmt: skip

STEPS: dict[str, Step] = {
    **{f"attention {kind}": _attention(kind) for kind in _KINDS},
    "heads": _heads,
    "map": lambda m, h, mask, k: F.gelu(m.first(h)) + h,
    "shift": lambda m, h, mask, k: F.pad(h, (0, 0, k, 0))[:, : h.shape[1]],
    "shift back": lambda m, h, mask, k: F.pad(h, (0, 0, 0, 1))[:, 1:],
    "cut pad": lambda m, h, mask, k: F.pad(F.pad(h, (0, 0, 2, -1)), (0, 0, -1, 0)),
    "roll": lambda m, h, mask, k: h.roll(k - 4, 1),
    "roll several": lambda m, h, mask, k: h.roll((1, k), (1, 2)),
    "flip": lambda m, h, mask, k: h.flip(1 + k % 2),
    "sum before": lambda m, h, mask, k: h.cumsum(1) / 8,
    "sum after": lambda m, h, mask, k: h.flip(1).cumsum(1).flip(1) / 8,
    "largest before": lambda m, h, mask, k: h.cummax(1 + k % 2).values,
    "convolution": lambda m, h, mask, k: m.depthwise(F.pad(h.mT, (k % 4, 2 - k % 4))).mT,
    "cut convolution": lambda m, h, mask, k: F.conv1d(
        h.mT, m.depthwise.weight, padding=2 * (1 + k % 3), dilation=1 + k % 2, groups=WIDTH
    )[..., : h.shape[1]].mT,
    "windows": lambda m, h, mask, k: _padded_mean(h, 1 + k % 4),
    "pool": lambda m, h, mask, k: F.max_pool1d(h.mT, 3, 1, 1).mT if k % 2 else F.avg_pool1d(h.mT, 3, 1, 1).mT,
    "mean": lambda m, h, mask, k: h + h.mean(k % 3, keepdim=True),
    "real mean": lambda m, h, mask, k: h + (h * mask[..., None]).sum(1, keepdim=True),
    "only real": lambda m, h, mask, k: h * mask[..., None] if k % 2 else h.masked_fill(mask[..., None] == 0, 0.0),
    "first token": lambda m, h, mask, k: h + h[:, :1],
    "last token": lambda m, h, mask, k: h + h[:, -1:],
    "token at": lambda m, h, mask, k: h + h[:, k % 3 - 1, None],
    "earlier token": lambda m, h, mask, k: h[:, (_indices(h)[1] - k).clamp(min=0)],
    "chunk start": lambda m, h, mask, k: h[:, _indices(h)[1] // k * k],
    "remainder": lambda m, h, mask, k: h[:, _indices(h)[1] % k],
    "negative index": lambda m, h, mask, k: h[:, _indices(h)[1] - h.shape[1]],
    "reversed index": lambda m, h, mask, k: h[:, h.shape[1] - 1 - _indices(h)[1]],
    "before and after": lambda m, h, mask, k: torch.cat([h[:, :1], h[:, :-1]], 1) if k % 2 else _write(h, k, h),
    "ends": lambda m, h, mask, k: h + torch.cat([h[:, -1:], h[:, :-1]], 1),
    "write": lambda m, h, mask, k: _write(h, k, h.flip(2)),
    "write first": lambda m, h, mask, k: _write_row(h, h[:, k % 2 - 1]),
    "where": lambda m, h, mask, k: torch.where((_indices(h)[0] % k == 0), h, h.roll(1, 1 + k % 2)),
    "below": lambda m, h, mask, k: _of_matrix(h, k, lower=True),
    "above": lambda m, h, mask, k: _of_matrix(h, k, lower=False),
    "einsum": lambda m, h, mask, k: torch.einsum("bik,bjk,jc->bic", h, h, h[0]) / 30 if k == 1 else torch.einsum(
        "bnk,ck->bnc", h, m.first.weight
    ),
    "merged": lambda m, h, mask, k: _merged(m, h, k),
    "experts": lambda m, h, mask, k: _experts(m, h, k),
    "scatter": lambda m, h, mask, k: _scattered(h, k),
    "copies": lambda m, h, mask, k: h.repeat(1, 1, 2)[..., k % 6 : k % 6 + WIDTH],
    "repeated": lambda m, h, mask, k: (
        h.repeat_interleave(2, 1)[:, ::2] if k % 2 else h.repeat(1, 2, 1)[:, : h.shape[1]]
    ),
    "rows": lambda m, h, mask, k: h.flip(0) if k % 2 else h + h[:1],
    "sorted": lambda m, h, mask, k: h.sort(1 + k % 2).values,
    "softmax": lambda m, h, mask, k: h.softmax(1 + k % 2),
    "norm": lambda m, h, mask, k: F.layer_norm(h, (WIDTH,)) if k % 2 else F.group_norm(h.mT, 2).mT,
    "diagonal": lambda m, h, mask, k: h + (h @ h.mT).diagonal(0, 1, 2)[..., None],
    "stack": lambda m, h, mask, k: torch.stack([h, h.flip(1)], k % 3).select(k % 3, k % 2),
    "all real": _asks,
    "long": lambda m, h, mask, k: h if h.shape[1] > k else h.flip(1),
}  # fmt: skip


def random_program(seed: int) -> tuple[str, Callable[..., Tensor]]:
    """A program and its steps as text."""
    random = Random(seed)
    chosen = [(random.choice(list(STEPS)), random.randint(1, 8)) for _ in range(random.randint(1, 4))]

    def function(m: Program, x: Tensor, mask: Tensor) -> Tensor:
        h = x
        for name, k in chosen:
            h = F.layer_norm(STEPS[name](m, h, mask, k), (WIDTH,)) if k % 3 == 0 else STEPS[name](m, h, mask, k)
        return h

    return ", ".join(f"{name} {k}" for name, k in chosen), function
