"""Small modules of tokens and their position ids, and whether they are equivariant to joint permutations of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Program, attend, lower

Function = Callable[[Program, Tensor, Tensor], Tensor]  # module, tokens, position ids


@dataclass(frozen=True)
class Case:
    """A program, and whether f(P x, P p) = P f(x, p) for every permutation P."""

    name: str
    function: Function
    equivariant: bool = True


def _rotated(m: Program, x: Tensor, p: Tensor) -> Tensor:
    angles = p[..., None] * torch.tensor([1.0, 0.1, 0.01])
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(torch.polar(torch.ones_like(angles), angles) * pairs).flatten(-2)
    return attend(m, turned, p[:, None, :] <= p[:, :, None])


def _fused(m: Program, x: Tensor, p: Tensor, *, causal: bool = False, masked: bool = True) -> Tensor:
    b, n, _ = x.shape
    q, k, v = (f(x).view(b, n, 2, WIDTH // 2).transpose(1, 2) for f in (m.first, m.second, m.third))
    mask = (p[:, None, None, :] <= p[:, None, :, None]) if masked else None
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal).transpose(1, 2).reshape(b, n, WIDTH)


def _grouped(m: Program, x: Tensor, p: Tensor) -> Tensor:
    b, n, _ = x.shape
    q = m.first(x).view(b, n, 2, 3).transpose(1, 2)
    k, v = (f(x)[..., :3].view(b, n, 1, 3).transpose(1, 2) for f in (m.second, m.third))
    bias = -(p[:, None, :, None] - p[:, None, None, :]).abs().to(x.dtype)
    return F.scaled_dot_product_attention(q, k, v, bias, enable_gqa=True).transpose(1, 2).flatten(2)


def _experts(m: Program, x: Tensor, p: Tensor) -> Tensor:
    flat = x.reshape(-1, WIDTH)
    weights, chosen = m.first(flat).softmax(-1).topk(2, dim=-1)
    spread = torch.zeros_like(flat).scatter(1, chosen, weights)
    return (m.second(flat) * spread + flat.gather(1, chosen).sum(-1, keepdim=True)).view(x.shape) + p[..., None]


def _pieces(m: Program, x: Tensor, p: Tensor) -> Tensor:
    first, second = m.first(x).chunk(2, dim=-1)
    joined = torch.cat([second, first.flip(-1)], -1)
    parts = torch.stack(joined.unbind(-1)[:2], -1).repeat(1, 1, 3)
    return joined[..., 1:4].repeat_interleave(2, dim=-1) + parts + joined.narrow(-1, 0, 6).roll(1, -1) + p[..., None]


def _sums(m: Program, x: Tensor, p: Tensor) -> Tensor:
    mean, largest = x.mean(1, keepdim=True), x.amax(1, keepdim=True)
    spread = torch.einsum("bnd,bne->bde", x, m.first(x))
    return torch.einsum("bnd,bde->bne", x, spread) / x.norm(dim=-1, keepdim=True) + mean * largest + p[..., None].cos()


def _places(m: Program, x: Tensor, p: Tensor) -> Tensor:
    best = x.argmax(-1)
    rows = torch.arange(WIDTH)[best]
    return m.table(best) + m.table.weight.index_select(0, rows.flatten()).view(x.shape) + x.max(-1).values[..., None]


def _shapes(m: Program, x: Tensor, p: Tensor) -> Tensor:
    y = m.first(x).permute(1, 0, 2).movedim(0, 1).unsqueeze(0).squeeze(0).expand(2, -1, -1, -1)
    y = y + torch.ones(x.shape[1], 1) + torch.arange(WIDTH).flip(0)
    return F.pad(y[0], (1, 1))[..., 1:-1].cumsum(-1).sort(dim=-1).values.log_softmax(-1) * p[..., None]


def _norms(m: Program, x: Tensor, p: Tensor) -> Tensor:
    y = F.layer_norm(x, (WIDTH,), m.sink.expand(WIDTH), m.sink.expand(WIDTH)) + F.rms_norm(x, (WIDTH,))
    y = F.group_norm(y.transpose(1, 2), 2, m.first.bias, m.second.bias).transpose(1, 2)
    return F.dropout(y, 0.5, training=False) + torch.addmm(m.first.bias, x.flatten(0, 1), m.second.weight).view_as(x)


def _weights_by_index(m: Program, x: Tensor, p: Tensor) -> Tensor:
    matrix = torch.outer(m.first.bias, m.second.bias).tril() + torch.eye(WIDTH) + m.first.weight.T
    window = F.conv1d(m.first.weight[None], m.depthwise.weight, groups=WIDTH)
    return x @ matrix + window.sum() + p[..., None]


def _upsampled(m: Program, x: Tensor, p: Tensor) -> Tensor:
    images = x.reshape(-1, 1, 2, WIDTH // 2)
    return F.interpolate(images, size=(3, 4), mode="bilinear").reshape(*x.shape[:2], -1) + p[..., None]


def _convolved(m: Program, x: Tensor, p: Tensor) -> Tensor:
    rows, kernel = x.reshape(-1, 1, WIDTH), m.depthwise.weight[:1]
    return F.conv_transpose1d(F.conv1d(rows, kernel), kernel).view(x.shape) + p[..., None]


def _with_sink(m: Program, x: Tensor, p: Tensor) -> Tensor:
    scores = (m.first(x) @ m.second(x).mT).masked_fill(p[:, None, :] > p[:, :, None], -1e9)
    weights = torch.cat([scores, m.sink.expand(*x.shape[:2], 1)], -1).softmax(-1)
    return weights[..., :-1] @ m.third(x)


def _between(m: Program, x: Tensor, p: Tensor) -> Tensor:
    around = F.pad(torch.cat([m.table.weight[:2].expand(x.shape[0], -1, -1), x], 1), (0, 0, 1, 3))
    mixed = around + (around @ around.mT).softmax(-1) @ around
    return mixed[:, 3:-3] + mixed[:, :2].sum(1, keepdim=True) + p[..., None]


def _written_in_parts(m: Program, x: Tensor, p: Tensor) -> Tensor:
    written = torch.empty_like(x)
    written[..., :2] = m.first(x)[..., :2]
    written[..., 2:] = p[..., None]
    return written


def _reversed_dimensions(m: Program, x: Tensor, p: Tensor) -> Tensor:
    """A tensor [token, token, token] with all dimensions in reverse: what ran along the first runs along the last."""
    n = x.shape[1]
    first = x[:, :, 0].sum(0)[:, None, None].expand(n, n, n)
    return x + torch.ops.aten.numpy_T(first)[:, 0, 0][:, None] + p[..., None]


def _index_of(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1], device=x.device)


def _write_first(x: Tensor, p: Tensor) -> Tensor:
    written = torch.zeros_like(x)
    written[:, 0] = x[:, 0]
    return written + p[..., None]


def _own_scores(m: Program, x: Tensor, p: Tensor, *, offset: int = 0) -> Tensor:
    """The score of each token with itself, or with its neighbour."""
    scores = m.first(x) @ m.second(x).mT
    own = F.pad(scores.diagonal(offset, -2, -1), (0, abs(offset)))
    return x * own[..., None] * p[..., None] + torch.einsum("bii->b", scores)[:, None, None]


def _groups(m: Program, x: Tensor, p: Tensor, *, written: str = "sum") -> Tensor:
    """The tokens in three groups, which their position ids choose, and the total of each group."""
    places = p.remainder(3)[..., None].expand_as(x)
    groups = torch.zeros_like(x[:, :1]).expand(-1, 3, -1)
    if written == "last":
        return x + groups.scatter(1, places, x).sum(1, keepdim=True)
    totals = groups.scatter_add(1, places, x) + groups.scatter_reduce(1, places, x, "amax")
    if written == "by index":
        totals = groups.scatter_add(1, (torch.arange(x.shape[1]) % 3)[None, :, None].expand_as(x), x)
    return x + totals.gather(1, places)


def _by_pairs(m: Program, x: Tensor, p: Tensor, pairs: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Attention along edges, and those that the indices of a pair of tokens give."""
    scores, place = m.first(x) @ m.second(x).mT, _index_of(x)
    seen = (scores > 0) | (scores.mT > 0) | pairs(place[:, None], place)
    return scores.masked_fill(~seen, -1e9).softmax(-1) @ x + p[..., None]


def _with_eye(m: Program, x: Tensor, p: Tensor) -> Tensor:
    """A graph in which each token is its own neighbour, by degrees."""
    edges = torch.sigmoid(m.first(x) @ m.first(x).mT) * (1 - torch.eye(x.shape[1])) + torch.eye(x.shape[1])
    degrees = edges.sum(-1).rsqrt()
    return degrees[..., None] * edges * degrees[:, None] @ x + p[..., None]


def _equal_of_three(x: Tensor, *, chain: bool) -> Tensor:
    """Sums over triples of tokens of which some are the same token."""
    i, j, k = (_index_of(x).view([-1 if d == a else 1 for d in range(3)]) for a in range(3))
    chosen = (i == j) & (j != k) if chain else (i == j) & (j < k)
    return x + torch.einsum("ijk,bkd->bid", chosen.to(x.dtype), x)


def _behind(m: Program, x: Tensor, p: Tensor, *, place: int = -1, start: int | None = None) -> Tensor:
    """What elements behind the tokens read, by their index from the end."""
    around = torch.cat([x, m.table.weight[:2].expand(x.shape[0], -1, -1)], 1)
    mixed = around + (around @ around.mT).softmax(-1) @ around
    read = mixed[:, place] if start is None else mixed[:, start:].sum(1)
    return x + read[:, None] + p[..., None]


def _branch(m: Program, x: Tensor, p: Tensor, *, first: bool) -> Tensor:
    return -x if bool((p[:, 0] if first else p.amax(1)).max() > 3) else x


CASES = [
    Case("linear", lambda m, x, p: m.first(x) + p[..., None]),
    Case("attention without a mask", lambda m, x, p: attend(m, x, None)),
    Case("attention with a mask of position ids", _rotated),
    Case("fused attention", _fused),
    Case("grouped heads with a bias of distances", _grouped),
    Case("experts", _experts),
    Case("pieces of the width", _pieces),
    Case("sums over tokens", _sums),
    Case("places along the width", _places),
    Case("shapes", _shapes),
    Case("norms", _norms),
    Case("weights by index", _weights_by_index),
    Case("positions by table", lambda m, x, p: x + m.table(p)),
    Case("pooled", lambda m, x, p: (x + m.table(p)).mean(1)),
    Case("pooled to one number", lambda m, x, p: x + F.adaptive_avg_pool1d(x.mT, 1).mT + p[..., None]),
    Case("largest token by pooling", lambda m, x, p: x + F.adaptive_max_pool1d(x.mT, 1).mT + p[..., None]),
    Case("place of the largest token by pooling",
         lambda m, x, p: x + F.adaptive_max_pool1d(x.mT, 1, return_indices=True)[1].mT, equivariant=False),
    Case("pooled features", lambda m, x, p: F.max_pool1d(F.adaptive_avg_pool1d(x, 5), 2) + p[..., None]),
    Case("upsampled features", _upsampled),
    Case("convolved features", _convolved),
    Case("pooled tokens", lambda m, x, p: x + F.adaptive_avg_pool1d(x.mT, 2).mT[:, :1], equivariant=False),
    Case("windows of tokens pooled", lambda m, x, p: F.avg_pool1d(x.mT, 3, 1, 1).mT, equivariant=False),
    Case("a branch on the largest position", lambda m, x, p: _branch(m, x, p, first=False)),
    Case("norm over tokens", lambda m, x, p: (x - x.mean(1, keepdim=True)) / x.var(1, keepdim=True).sqrt()),
    Case("products of tokens", lambda m, x, p: (x @ x.transpose(1, 2)).softmax(-1).logsumexp(-1, keepdim=True) + x),
    Case("every token alone", lambda m, x, p: m.first(x).where(x > 0, x.clamp(min=-1))),
    Case("attention with a sink", _with_sink),
    Case("tokens between others", _between),
    Case("element behind the tokens", _behind),
    Case("first element behind the tokens", lambda m, x, p: _behind(m, x, p, place=-2)),
    Case("elements behind the tokens", lambda m, x, p: _behind(m, x, p, start=-2)),
    Case("last of the tokens", lambda m, x, p: _behind(m, x, p, place=-3), equivariant=False),
    Case("elements from the last token on", lambda m, x, p: _behind(m, x, p, start=-3), equivariant=False),
    Case("memory written in parts", _written_in_parts),
    Case("scores of each token itself", _own_scores),
    Case("scores of neighbours", lambda m, x, p: _own_scores(m, x, p, offset=1), equivariant=False),
    Case("diagonal of scores and places", lambda m, x, p: x * (x @ m.table.weight[: x.shape[1]].mT).diagonal(0, 1, 2)[
        ..., None], equivariant=False),
    Case("totals of groups", _groups),
    Case("groups by index", lambda m, x, p: _groups(m, x, p, written="by index"), equivariant=False),
    Case("the last token of each group", lambda m, x, p: _groups(m, x, p, written="last"), equivariant=False),
    Case("median of the tokens", lambda m, x, p: x - x.sort(dim=1).values[:, 1:2] + x.max(1).values[:, None]),
    Case("element of a rank", lambda m, x, p: x + x.kthvalue(2, dim=1).values[:, None] + x.kthvalue(1, 2, True).values),
    Case("place of the element of a rank", lambda m, x, p: x + x.kthvalue(2, 1, True).indices, equivariant=False),
    Case("mask by index that hides nothing", lambda m, x, p: attend(m, x, (_index_of(x) >= 0)[None, :])),
    Case("table of one number", lambda m, x, p: attend(m, x, m.triangle[-1:, : x.shape[1]])),
    Case("memory written for one token", lambda m, x, p: _write_first(x, p), equivariant=False),
    Case("edges to the token itself", lambda m, x, p: _by_pairs(m, x, p, lambda i, j: i == j)),
    Case("edges to all other tokens", lambda m, x, p: _by_pairs(m, x, p, lambda i, j: ~(i != j) ^ (j == i + 0))),
    Case("graph of an identity matrix", _with_eye),
    Case("triples of tokens", lambda m, x, p: _equal_of_three(x, chain=True) + p[..., None]),
    Case("triples of tokens in order", lambda m, x, p: _equal_of_three(x, chain=False) + p[..., None],
         equivariant=False),
    Case("edges to the next token", lambda m, x, p: _by_pairs(m, x, p, lambda i, j: i == j + 1), equivariant=False),
    Case("edges to earlier tokens", lambda m, x, p: _by_pairs(m, x, p, lambda i, j: i >= j), equivariant=False),
    Case("edges of the first token to itself", lambda m, x, p: _by_pairs(m, x, p, lambda i, j: (i == j) & (j == 0)),
         equivariant=False),
    Case("edges to the token at the other end", lambda m, x, p: _by_pairs(
        m, x, p, lambda i, j: i + j == x.shape[1] - 1), equivariant=False),
    Case("identity matrix times other weights", lambda m, x, p: (x @ m.table.weight[: x.shape[1]].mT
         * torch.eye(x.shape[1])) @ x, equivariant=False),
    Case("identity matrix that is a slice", lambda m, x, p: _by_pairs(
        m, x, p, lambda i, j: torch.eye(x.shape[1] + 1)[1:, :-1] > 0), equivariant=False),
    Case("index of the token", lambda m, x, p: x + _index_of(x)[:, None], equivariant=False),
    Case("table by index", lambda m, x, p: x + m.table(_index_of(x)), equivariant=False),
    Case("table by slice", lambda m, x, p: x + m.table.weight[: x.shape[1]], equivariant=False),
    Case("all dimensions in reverse", _reversed_dimensions, equivariant=False),
    Case("the last of the largest tokens", lambda m, x, p: x + x.max(1)[1].max() + p[..., None], equivariant=False),
    Case("the last of the sorted tokens", lambda m, x, p: x + x.sort(1)[1].amin(0).max() + p[..., None],
         equivariant=False),
    Case("causal mask by index", lambda m, x, p: attend(m, x, lower(x)), equivariant=False),
    Case("stored triangle", lambda m, x, p: attend(m, x, m.triangle[: x.shape[1], : x.shape[1]]), equivariant=False),
    Case("fused and causal", lambda m, x, p: _fused(m, x, p, causal=True, masked=False), equivariant=False),
    Case("sum from the start", lambda m, x, p: x.cumsum(1), equivariant=False),
    Case("sorted tokens", lambda m, x, p: x.sort(dim=1).values, equivariant=False),
    Case("largest tokens", lambda m, x, p: x + x.topk(2, dim=1).values.sum(1, keepdim=True) * 0 + x.argmax(1)[:, None],
         equivariant=False),
    Case("reversed", lambda m, x, p: x.flip(1), equivariant=False),
    Case("shifted", lambda m, x, p: x.roll(1, 1), equivariant=False),
    Case("first token", lambda m, x, p: x + x[:, :1], equivariant=False),
    Case("last token", lambda m, x, p: x[:, -1], equivariant=False),
    Case("one token chosen", lambda m, x, p: x + x.select(1, 0)[:, None], equivariant=False),
    Case("token by position", lambda m, x, p: x.gather(1, p.remainder(2)[..., None].expand_as(x)), equivariant=False),
    Case("window of tokens", lambda m, x, p: m.depthwise(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2),
         equivariant=False),
    Case("a token in front kept", lambda m, x, p: torch.cat([x[:, :1] * 0, x], 1), equivariant=False),
    Case("a token in front", lambda m, x, p: torch.cat([x[:, :1] * 0, x], 1)[:, :-1], equivariant=False),
    Case("halves exchanged", lambda m, x, p: torch.cat(x.split([1, x.shape[1] - 1], 1)[::-1], 1), equivariant=False),
    Case("merged and shifted", lambda m, x, p: x.reshape(-1, WIDTH).roll(1, 0).view(x.shape), equivariant=False),
    Case("repeated and cut", lambda m, x, p: x.repeat_interleave(2, 1)[:, : x.shape[1]], equivariant=False),
    Case("upper triangle of products", lambda m, x, p: (x @ x.transpose(1, 2)).triu().sum(-1, keepdim=True) + x,
         equivariant=False),
    Case("norm with weights by index", lambda m, x, p: F.layer_norm(x.transpose(1, 2), (x.shape[1],),
         m.table.weight[: x.shape[1], 0]).transpose(1, 2), equivariant=False),
    Case("a branch on the first position", lambda m, x, p: _branch(m, x, p, first=True), equivariant=False),
    Case("widths taken for tokens", lambda m, x, p: x.transpose(1, 2).reshape(x.shape), equivariant=False),
    Case("mixed by a map over tokens", lambda m, x, p: m.table.weight[: x.shape[1], : 1] * x.sum(1, keepdim=True),
         equivariant=False),
    Case("position of the neighbour", lambda m, x, p: x + m.table(p.roll(1, 1)), equivariant=False),
    Case("difference of neighbours", lambda m, x, p: F.pad(x.diff(dim=1), (0, 0, 1, 0)), equivariant=False),
]  # fmt: skip
