"""Graphs of tokens: edges by adjacency, distance, similarity and neighbours."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _edges(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    return (torch.sigmoid(s + s.mT) > 0.5) | torch.eye(x.shape[1], dtype=torch.bool)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def attention_along_edges(m: Parts, x: Tensor) -> Tensor:
    return m.scores(x).masked_fill(~_edges(m, x), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def convolution_by_degrees(m: Parts, x: Tensor) -> Tensor:
    a = _edges(m, x).to(x.dtype)
    d = a.sum(-1).rsqrt()
    return F.relu(m.o(d.unsqueeze(-1) * a * d.unsqueeze(-2) @ x))


@UNSEEN.add(causal=True, batch=True)
def edges_to_earlier_nodes(m: Parts, x: Tensor) -> Tensor:
    a = _edges(m, x).to(x.dtype).tril()
    d = a.sum(-1).pow(-0.5)
    return F.relu(m.o(d[..., None] * a * d[:, None] @ x))


@UNSEEN.add(causal=False, batch=True)
def edges_to_earlier_nodes_by_all_degrees(m: Parts, x: Tensor) -> Tensor:
    a = _edges(m, x).to(x.dtype)
    d = a.sum(-1).pow(-0.5)
    return F.relu(m.o((d[..., None] * a * d[:, None]).tril() @ x))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def nodes_within_a_radius(m: Parts, x: Tensor) -> Tensor:
    near = torch.cdist(x[..., :3], x[..., :3]) < 2.0
    return (near.to(x.dtype) @ m.v(x)) / near.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def distances_as_a_bias(m: Parts, x: Tensor) -> Tensor:
    d = (x[:, :, None, :3] - x[:, None, :, :3]).square().sum(-1)
    s = m.scores(x) - torch.exp(m.decay[0]) * d
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def distances_in_units_of_their_mean(m: Parts, x: Tensor) -> Tensor:
    d = (x[:, :, None, :3] - x[:, None, :, :3]).square().sum(-1)
    s = m.scores(x) - d / d.mean((1, 2), keepdim=True)
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def nearest_neighbours_gathered(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    index = torch.cdist(x, x).topk(3, largest=False).indices
    near = m.v(x).gather(1, index.reshape(b, -1, 1).expand(-1, -1, d)).view(b, t, 3, d)
    return m.o((near - x[:, :, None]).amax(2))


@UNSEEN.add(causal=True, batch=True)
def nearest_earlier_neighbours(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    distance = torch.cdist(m.q(x), m.k(x)).masked_fill(later(t), float("inf"))
    near, index = distance.topk(3, dim=-1, largest=False)
    v = m.v(x)[torch.arange(b)[:, None, None], index]
    return ((-near).softmax(-1)[..., None] * v).sum(2)


@UNSEEN.add(causal=False, batch=True)
def nearest_neighbours_then_a_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    index = m.scores(x).topk(4, dim=-1).indices
    chosen = torch.zeros(x.shape[0], t, t, dtype=torch.bool).scatter(-1, index, True)
    seen = (chosen & ~later(t)) | torch.eye(t, dtype=torch.bool)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def additive_scores_along_edges(m: Parts, x: Tensor) -> Tensor:
    h = m.v(x)
    s = F.leaky_relu((h * m.decay).sum(-1)[:, :, None] + (h @ m.latents[0])[:, None, :], 0.2)
    return F.elu(torch.where(_edges(m, x), s, -9e15).softmax(dim=2) @ h)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def nodes_embedded_by_their_degree(m: Parts, x: Tensor) -> Tensor:
    a = _edges(m, x)
    y = x + m.table(a.sum(-1).clamp(max=63))
    hops = 1 + (~a).long() + ((a.long() @ a.long()) == 0).long()
    q, k, v = m.heads(y)
    return m.join((q @ k.mT + m.bias(hops).permute(0, 3, 1, 2)).softmax(-1) @ v)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def returns_of_random_walks(m: Parts, x: Tensor) -> Tensor:
    a = _edges(m, x).to(x.dtype)
    p = a / a.sum(-1, keepdim=True)
    walk, returns = p, []
    for _ in range(4):
        returns.append(walk.diagonal(dim1=1, dim2=2))
        walk = walk @ p
    return m.o(torch.cat([x[..., :4], torch.stack(returns, -1)], -1))


@UNSEEN.add(masked=True, padding=True, batch=True)
def readout_with_gates(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    gate = m.router(x)[..., :1].masked_fill(mask[..., None] == 0, INF)
    return m.o((gate.softmax(1) * m.v(x)).sum(1))


@UNSEEN.add(masked=True, padding=True, causal=False, batch=True)
def messages_between_real_nodes(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    pairs = mask[:, :, None] * mask[:, None, :]
    a = (m.scores(x) > 0) * pairs
    h = a.to(x.dtype) @ m.v(x) / a.sum(-1, keepdim=True).clamp(min=1)
    return F.relu(m.q(x) + h)


@UNSEEN.add(masked=True, padding=False, causal=False, batch=True)
def messages_to_real_nodes(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    a = (m.scores(x) > 0) * mask[:, :, None]
    h = a.to(x.dtype) @ m.v(x) / a.sum(-1, keepdim=True).clamp(min=1)
    return F.relu(m.q(x) + h)


@UNSEEN.add(causal=True, batch=True)
def tree_of_the_nearest_parent(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    s = m.scores(x).masked_fill(later(t, 0), INF)
    s[:, 0, 0] = 0.0
    parent = F.one_hot(s.argmax(-1), t).to(x.dtype)
    return m.o(x + parent @ m.v(x))


@UNSEEN.add(causal=False, batch=True)
def children_of_each_node(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    s = m.scores(x).masked_fill(later(t, 0), INF)
    s[:, 0, 0] = 0.0
    parent = F.one_hot(s.argmax(-1), t).to(x.dtype)
    return m.o(x + parent.mT @ m.v(x))


@UNSEEN.add(causal=True, batch=True)
def paths_to_earlier_nodes(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    reach = ((m.scores(x) > 0.2) & ~later(t)) | torch.eye(t, dtype=torch.bool)
    for _ in range(3):
        reach = (reach.to(x.dtype) @ reach.to(x.dtype)) > 0
    return m.scores(x).masked_fill(~reach, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(batch=False, permutation=True)
def edges_above_the_mean_of_the_batch(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    a = torch.where(s >= s.mean(), s, torch.zeros_like(s))
    return a @ m.v(x)
