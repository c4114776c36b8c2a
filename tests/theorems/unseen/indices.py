"""Gathers, scatters and segments: words of subwords, spans, classes and losses of tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _at(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[2]))


def _words(x: Tensor) -> Tensor:
    """The number of the word of each token, from tokens that start one [row, token]."""
    return F.pad((x[:, 1:, 0] > 0).long(), (1, 0)).cumsum(1)


@UNSEEN.add(causal=False, batch=True, permutation=False)
def mean_of_each_three_by_scatter_reduce(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    index = (torch.arange(t) // 3).view(1, t, 1).expand(b, t, d)
    mean = torch.zeros_like(x).scatter_reduce(1, index, m.v(x), "mean", include_self=False)
    return x + mean.gather(1, index)


@UNSEEN.add(causal=True, batch=True)
def largest_of_earlier_threes_by_scatter_reduce(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    index = (torch.arange(t) // 3).view(1, t, 1).expand(b, t, d)
    best = x.new_full((b, t, d), -1e3).scatter_reduce(1, index, m.v(x), "amax")
    earlier = F.pad(best[:, :-1], (0, 0, 1, 0), value=-1e3).cummax(1).values
    return x + earlier.gather(1, index).tanh()


@UNSEEN.add(causal=False, batch=True)
def sums_of_threes_in_a_flat_table(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    n = -(-t // 3)
    index = (torch.arange(b)[:, None] * n + torch.arange(t) // 3).flatten()
    table = x.new_zeros(b * n, d).index_add(0, index, m.v(x).flatten(0, 1))
    return m.o(table[index].view(b, t, d))


@UNSEEN.add(causal=False, batch=False)
def sums_of_threes_without_an_offset_for_each_row(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    index = (torch.arange(t) // 3).repeat(b)
    table = x.new_zeros(t, d).index_add(0, index, m.v(x).flatten(0, 1))
    return m.o(table[index].view(b, t, d))


@UNSEEN.add(causal=False, batch=True)
def subwords_get_the_mean_of_their_word(m: Parts, x: Tensor) -> Tensor:
    member = F.one_hot(_words(x), x.shape[1]).to(x.dtype)
    mean = member.mT @ m.v(x) / member.sum(1).clamp(min=1)[..., None]
    return member @ mean


@UNSEEN.add(causal=True, batch=True)
def subwords_get_their_word_so_far(m: Parts, x: Tensor) -> Tensor:
    word = _words(x)
    same = (word[:, :, None] == word[:, None]).to(x.dtype).tril()
    return m.o(same @ m.v(x) / same.sum(-1, keepdim=True))


@UNSEEN.add(causal=True, batch=True, permutation=False)
def last_subword_of_the_word_before(m: Parts, x: Tensor) -> Tensor:
    starts = F.pad(x[:, 1:, 0] > 0, (1, 0))
    start = torch.where(starts, torch.arange(x.shape[1]), 0).cummax(1).values
    return m.o(x + _at(m.v(x), (start - 1).clamp(min=0)) * (start > 0)[..., None])


@UNSEEN.add(causal=False, batch=True)
def first_subword_of_the_word_after(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    starts = F.pad(x[:, 1:, 0] > 0, (0, 1))
    after = torch.where(starts, torch.arange(1, t + 1), t - 1).flip(1).cummin(1).values.flip(1)
    return m.o(x + _at(m.v(x), after))


@UNSEEN.add(causal=True, batch=True)
def spans_that_end_at_each_token(m: Parts, x: Tensor) -> Tensor:
    end = torch.arange(x.shape[1])
    first = x[:, (end - 2).clamp(min=0)]
    return m.down(torch.cat([first + x, first * x], -1))


@UNSEEN.add(causal=False, batch=True)
def span_sums_that_end_one_too_late(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    total, i = m.v(x).cumsum(1), torch.arange(t)
    return m.o(total[:, (i + 1).clamp(max=t - 1)] - total[:, (i - 2).clamp(min=0)])


@UNSEEN.add(masked=True, padding=True, batch=True)
def scores_of_all_spans_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.q(x).sum(-1)[:, :, None] + m.k(x).sum(-1)[:, None]
    valid = (mask[:, :, None] * mask[:, None]).triu() > 0
    return s.masked_fill(~valid, -1e9).flatten(1).logsumexp(1, keepdim=True)


@UNSEEN.add(masked=True, padding=False, batch=True)
def loss_masked_by_its_targets(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    forecast, target = m.o(x[:, :-1]), x[:, 1:]
    loss = (forecast - target).square().mean(-1) * mask[:, 1:]
    return loss.sum(1, keepdim=True) / mask[:, 1:].sum(1, keepdim=True).clamp(min=1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def loss_masked_by_its_inputs_and_targets(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    both = mask[:, :-1] * mask[:, 1:]
    loss = F.smooth_l1_loss(m.o(x[:, :-1]), x[:, 1:], reduction="none").mean(-1)
    return (loss * both).sum(1, keepdim=True) / both.sum(1, keepdim=True).clamp(min=1)


@UNSEEN.add(causal=False, batch=False, permutation=True)
def hard_tokens_of_the_batch_weigh_more(m: Parts, x: Tensor) -> Tensor:
    loss = (m.o(x) - x).square().mean(-1, keepdim=True)
    return m.v(x) * loss / loss.mean()


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def loss_that_ignores_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    target = (x[..., 0] > 0).long().masked_fill(mask == 0, -100)
    loss = F.cross_entropy(m.router(x).mT, target, ignore_index=-100, reduction="none")
    return loss.sum(1, keepdim=True) / mask.sum(1, keepdim=True)


@UNSEEN.add(causal=False, batch=True)
def tokens_before_by_negative_indices(m: Parts, x: Tensor) -> Tensor:
    index = torch.arange(x.shape[1])[:, None] - torch.tensor([2, 1, 0])
    return m.o(m.v(x)[:, index].mean(2))


@UNSEEN.add(permutation=True, batch=True)
def sums_of_classes_by_index_put(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    kind = m.router(x).argmax(-1)
    rows = torch.arange(b)[:, None].expand(b, t)
    return x.new_zeros(b, 4, WIDTH).index_put((rows, kind), m.v(x), accumulate=True).flatten(1)


@UNSEEN.add(permutation=False, batch=True)
def latest_token_of_each_class(m: Parts, x: Tensor) -> Tensor:
    kind = F.one_hot(m.router(x).argmax(-1), 4)
    place = (kind * torch.arange(1, x.shape[1] + 1)[:, None]).amax(1)
    return (_at(x, (place - 1).clamp(min=0)) * (place > 0)[..., None]).flatten(1)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def tokens_weighted_by_the_rarity_of_their_class(m: Parts, x: Tensor) -> Tensor:
    kind = F.one_hot(m.router(x).argmax(-1), 4).to(x.dtype)
    share = kind.mean(1, keepdim=True)
    return m.v(x) / (kind * share).sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def copy_weights_scattered_to_classes(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    w = m.scores(x).masked_fill(later(t), INF).softmax(-1)
    kind = m.router(x).argmax(-1)[:, None].expand(b, t, t)
    return x.new_zeros(b, t, 4).scatter_add(2, kind, w)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def order_undone_by_its_inverse(m: Parts, x: Tensor) -> Tensor:
    order = torch.arange(x.shape[1]).roll(2)
    return m.o(F.silu(m.v(x[:, order])))[:, order.argsort()]


@UNSEEN.add(causal=False, batch=True)
def order_undone_by_itself(m: Parts, x: Tensor) -> Tensor:
    order = torch.arange(x.shape[1]).roll(1)
    return x + m.o(F.silu(m.v(x[:, order])))[:, order]


@UNSEEN.add(masked=True, padding=True, batch=True)
def stored_features_in_the_places_of_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    source = m.o(m.table.weight)
    h = x.masked_scatter((mask == 0)[..., None], source)
    return m.scores(h).softmax(-1) @ m.v(h)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def stored_features_by_the_count_of_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    free = mask == 0
    index = (free.cumsum(1) - 1).clamp(min=0)
    h = torch.where(free[..., None], m.table(index), x)
    return m.scores(h).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(h)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def offsets_into_the_past_chosen_by_content(m: Parts, x: Tensor) -> Tensor:
    back = m.router(x).argmax(-1)
    return m.o(x + _at(m.v(x), (torch.arange(x.shape[1]) - back).clamp(min=0)))


@UNSEEN.add(causal=True, batch=True)
def places_between_earlier_tokens_interpolated(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    place = (i - 2 * m.router(x)[..., 0].sigmoid()).clamp(min=0)
    low = place.floor()
    share = (place - low)[..., None]
    high = torch.minimum(low.long() + 1, i)
    return m.o((1 - share) * _at(x, low.long()) + share * _at(x, high))
