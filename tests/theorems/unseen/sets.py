"""Sets and graphs of tokens, rows that are compared within a batch, and two texts in one row."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts

UNSEEN = Corpus()
INF = float("-inf")


def _rows(m: Parts, x: Tensor) -> Tensor:
    """A unit vector of each row [row, feature]."""
    return F.normalize(m.o(x.mean(1)), dim=-1)


def _links(m: Parts, x: Tensor) -> Tensor:
    """Weights of links between all tokens, the same in both directions [row, token, token]."""
    h = m.q(x)
    return (h @ h.mT / WIDTH).sigmoid()


def _linked(m: Parts, x: Tensor) -> Tensor:
    """Each token's links that are there [row, token, token]."""
    return (m.scores(x) > 0).to(x.dtype)


@UNSEEN.add(permutation=True, causal=False, batch=True)
def elements_less_the_largest_of_the_set(m: Parts, x: Tensor) -> Tensor:
    return m.o(F.elu(m.q(x) - m.k(x.amax(1, keepdim=True))))


@UNSEEN.add(masked=True, padding=True, permutation=True)
def ordered_pairs_of_real_elements(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    pair = F.gelu(m.q(x)[:, :, None] + m.k(x)[:, None])
    both = mask[:, :, None] * mask[:, None]
    return m.o((pair * both[..., None]).sum((1, 2)) / both.sum((1, 2))[:, None].clamp(min=1))


@UNSEEN.add(masked=True, padding=False, permutation=True)
def pairs_of_a_real_element_and_any_other(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    pair = F.gelu(m.q(x)[:, :, None] + m.k(x)[:, None])
    others = pair.sum(2) - pair.diagonal(dim1=1, dim2=2).mT
    return m.o((others * mask[..., None]).sum(1) / (mask.sum(1, keepdim=True) * (t - 1)))


@UNSEEN.add(masked=True, padding=True, permutation=False)
def each_pair_of_real_elements_once(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    pair = F.relu(m.q(x)[:, :, None] - m.k(x)[:, None])
    once = (mask[:, :, None] * mask[:, None]).triu(1)
    return m.o(torch.einsum("bij,bijd->bd", once.to(x.dtype), pair))


@UNSEEN.add(permutation=True, batch=True)
def each_pair_once_by_a_symmetric_map(m: Parts, x: Tensor) -> Tensor:
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    pair = torch.cat([x[:, i] + x[:, j], (x[:, i] - x[:, j]).abs()], -1)
    return m.down(pair).relu().sum(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, causal=False)
def degrees_of_real_neighbours_on_both_sides(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    links = _links(m, x) * mask[:, None] * mask[:, :, None] + torch.eye(x.shape[1])
    root = links.sum(-1).rsqrt()
    return m.o(root[:, :, None] * links * root[:, None] @ x)


@UNSEEN.add(masked=True, padding=False, permutation=True)
def degrees_of_all_neighbours(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    links = _links(m, x)
    degree = links.sum(-1, keepdim=True)
    return m.o((links * mask[:, None] / degree) @ x)


@UNSEEN.add(permutation=True, causal=False, batch=True)
def links_made_symmetric(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    return torch.maximum(s, s.mT).softmax(-1) @ m.v(x)


@UNSEEN.add(permutation=True, batch=True)
def two_steps_of_a_laplacian(m: Parts, x: Tensor) -> Tensor:
    links = _links(m, x)
    laplacian = torch.diag_embed(links.sum(-1)) - links
    for _ in range(2):
        x = x - 0.1 * laplacian @ x
    return m.o(x)


@UNSEEN.add(masked=True, padding=True, permutation=True)
def chebyshev_polynomials_of_real_links(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    links = _links(m, x) * mask[:, None]
    links = links / links.sum(-1, keepdim=True).clamp(min=1e-6)
    before, now = x, links @ x
    out = m.q(before) + m.k(now)
    for layer in (m.v, m.o):
        before, now = now, 2 * links @ now - before
        out = out + layer(now)
    return out


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def walks_that_return_to_their_start(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    walk = m.scores(x).masked_fill(mask[:, None] == 0, INF).softmax(-1)
    h = start = m.o(x)
    for _ in range(4):
        h = 0.8 * walk @ h + 0.2 * start
    return h


@UNSEEN.add(masked=True, padding=True, permutation=True, causal=False)
def largest_of_linked_real_neighbours(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    linked = (_linked(m, x) * mask[:, None])[..., None] > 0
    best = torch.where(linked, m.v(x)[:, None], INF).amax(2)
    return m.o(torch.where(linked.any(2), best, 0.0))


@UNSEEN.add(causal=True, permutation=False, batch=True)
def sum_of_earlier_linked_nodes(m: Parts, x: Tensor) -> Tensor:
    return m.down(F.relu(m.up(1.1 * x + _linked(m, x).tril(-1) @ x)))


@UNSEEN.add(permutation=True, batch=True, causal=False)
def nodes_updated_by_a_cell_of_messages(m: Parts, x: Tensor) -> Tensor:
    h = x
    for _ in range(2):
        message = _linked(m, x) @ m.v(h)
        h = m.cell(message.flatten(0, 1), h.flatten(0, 1)).view_as(x)
    return h


@UNSEEN.add(causal=True, batch=True, permutation=False)
def messages_along_a_chain_of_edges(m: Parts, x: Tensor) -> Tensor:
    source = torch.arange(x.shape[1] - 1)
    return x.index_add(1, source + 1, m.v(x).relu()[:, source])


@UNSEEN.add(causal=False, batch=True)
def messages_around_a_ring_of_edges(m: Parts, x: Tensor) -> Tensor:
    source = torch.arange(x.shape[1])
    return x.index_add(1, (source + 1) % x.shape[1], m.v(x).relu()[:, source])


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def points_pulled_by_real_points(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    point = x[..., :3]
    apart = point[:, :, None] - point[:, None]
    pull = torch.exp(-apart.square().sum(-1)) * mask[:, None]
    return torch.cat([point + (pull[..., None] * apart).sum(2), x[..., 3:]], -1)


@UNSEEN.add(batch=False, permutation=True)
def rows_scored_against_each_other(m: Parts, x: Tensor) -> Tensor:
    z = _rows(m, x)
    return (z @ z.T / 0.1).log_softmax(-1)


@UNSEEN.add(batch=False, permutation=True)
def own_row_against_the_others(m: Parts, x: Tensor) -> Tensor:
    z, other = _rows(m, x), F.normalize(m.v(x).amax(1), dim=-1)
    s = z @ other.T
    return (s.diagonal() - s.logsumexp(1))[:, None]


@UNSEEN.add(batch=True, permutation=True)
def rows_scored_against_a_stored_queue(m: Parts, x: Tensor) -> Tensor:
    z = _rows(m, x)
    own = (z * F.normalize(x.amax(1), dim=-1)).sum(-1, keepdim=True)
    return torch.cat([own, z @ F.normalize(m.table.weight, dim=-1).T], 1).log_softmax(-1)


@UNSEEN.add(batch=False, permutation=True)
def features_decorrelated_over_the_batch(m: Parts, x: Tensor) -> Tensor:
    z = m.o(x.mean(1))
    z = (z - z.mean(0)) / (z.std(0) + 1e-3)
    return z @ (z.T @ z / z.shape[0])


@UNSEEN.add(batch=False, permutation=True)
def hardest_other_row(m: Parts, x: Tensor) -> Tensor:
    z = _rows(m, x)
    s = (z @ z.T).masked_fill(torch.eye(x.shape[0], dtype=torch.bool), -2.0)
    return m.gate(z) - s.amax(1, keepdim=True)


@UNSEEN.add(batch=False, causal=True)
def even_and_odd_rows_joined_without_interleaving(m: Parts, x: Tensor) -> Tensor:
    return torch.cat([m.gru(x[::2])[0], m.gru(x[1::2])[0]], 0)


@UNSEEN.add(batch=True, causal=True)
def answer_reads_the_question(m: Parts, x: Tensor) -> Tensor:
    question, answer = x[:, :3], x[:, 3:]
    read = (m.q(answer) @ m.k(question).mT).softmax(-1) @ m.v(question)
    return torch.cat([m.v(question), m.o(answer + read)], 1)


@UNSEEN.add(masked=True, padding=True, permutation=False, batch=True)
def two_halves_of_real_tokens_compared(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    count = mask.cumsum(1)
    first = mask * (2 * count <= mask.sum(1, keepdim=True))
    a, b = ((x * w[..., None]).sum(1) / w.sum(1, keepdim=True).clamp(min=1) for w in (first, mask - first))
    return torch.cat([a * b, (a - b).abs()], -1)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def segments_between_long_tokens_embedded(m: Parts, x: Tensor) -> Tensor:
    segment = (x[..., 0] > 1).long().cumsum(1) % 2
    return m.o(x + m.table(segment))


@UNSEEN.add(masked=True, padding=False, batch=True)
def four_axes_of_a_mask_on_the_queries(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    return m.join((q @ k.mT).masked_fill(mask[:, None, :, None] == 0, -1e9).softmax(-1) @ v)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def four_axes_of_a_mask_and_a_triangle(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    q, k, v = m.heads(x)
    seen = m.triangle[..., :t, :t] & mask.bool().view(-1, 1, 1, t).expand(-1, HEADS, t, t)
    return m.join(F.scaled_dot_product_attention(q, k, v, attn_mask=seen | torch.eye(t).bool()))
