"""Padding code that moves real tokens, and counts of real tokens used as places."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _attend(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return m.scores(x).masked_fill(~seen, -1e9).softmax(-1) @ m.v(x)


def _at(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[2]))


@UNSEEN.add(masked=True, padding=True, batch=True)
def packed_by_scatter_with_a_spare_slot(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, d = x.shape
    place = torch.where(mask.bool(), mask.cumsum(1) - 1, t)
    packed = x.new_zeros(b, t + 1, d).scatter(1, place[..., None].expand_as(x), x)[:, :t]
    seen = torch.arange(t) < mask.sum(1, keepdim=True)
    return _at(_attend(m, packed, seen[:, None]), place.clamp(max=t - 1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def packed_by_scatter_without_a_spare_slot(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    place = (mask.cumsum(1) - 1).clamp(min=0)
    packed = torch.zeros_like(x).scatter(1, place[..., None].expand_as(x), x)
    seen = torch.arange(x.shape[1]) < mask.sum(1, keepdim=True)
    return _at(_attend(m, packed, seen[:, None]), place)


@UNSEEN.add(masked=True, padding=True, batch=True)
def rows_rolled_by_their_left_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    lead = mask.argmax(1, keepdim=True)
    index = (torch.arange(t) + lead) % t
    h = _at(x, index) + m.table(torch.arange(t))
    y = _attend(m, h, mask.gather(1, index)[:, None].bool())
    return _at(y, (torch.arange(t) - lead) % t)


@UNSEEN.add(masked=True, padding=False, batch=True)
def rows_rolled_by_the_number_of_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    n = mask.sum(1, keepdim=True)
    y = _attend(m, _at(x, (torch.arange(t) + t - n) % t), (torch.arange(t) < n)[:, None])
    return _at(y, (torch.arange(t) - t + n) % t)


@UNSEEN.add(masked=True, batch=True, permutation=False)
def rows_with_pads_in_front_flipped(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    front = (mask[:, :1] == 0)[..., None]
    h = m.gru(torch.where(front, x.flip(1), x))[0]
    return torch.where(front, h.flip(1), h)


@UNSEEN.add(masked=True, padding=True, batch=True, causal=True)
def rows_sorted_by_length_and_put_back(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    order = mask.sum(1).argsort(descending=True, stable=True)
    h = m.gru((x * mask[..., None])[order])[0]
    return h[order.argsort()]


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def slopes_times_the_count_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    bias = m.slopes.view(1, HEADS, 1, 1) * ((mask.cumsum(-1) - 1) * mask)[:, None, None]
    hidden = later(x.shape[1]) | (mask[:, None, None] == 0)
    return m.join((q @ k.mT + bias).masked_fill(hidden, torch.finfo(x.dtype).min).softmax(-1) @ v)


@UNSEEN.add(masked=True, padding=True, batch=True)
def token_before_the_last_real_one(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    last = (i * mask).amax(1, keepdim=True)
    before = torch.where((mask > 0) & (i < last), i, -1).amax(1, keepdim=True)
    return m.o(_at(x, before.clamp(min=0))[:, 0] * (before >= 0))


@UNSEEN.add(masked=True, padding=True, batch=True)
def ends_of_runs_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    ends = mask * (1 - F.pad(mask[:, 1:], (0, 1)))
    return m.o((x * ends[..., None]).sum(1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def first_pad_taken_for_the_last_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    end = (mask == 0).long().argmax(1)
    return m.o(x[torch.arange(x.shape[0]), end])


@UNSEEN.add(masked=True, padding=True, batch=True, right=True)
def token_before_the_first_pad(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    end = ((mask == 0).long().argmax(1) - 1) % x.shape[1]
    return m.o(x[torch.arange(x.shape[0]), end])


@UNSEEN.add(masked=True, padding=True, batch=True, causal=True)
def flat_real_tokens_copied_back(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    flat = x.flatten(0, 1)
    index = mask.flatten().nonzero().flatten()
    y = m.down(F.relu(m.up(flat[index])))
    return torch.zeros_like(flat).index_copy(0, index, y).view_as(x)


@UNSEEN.add(masked=True, padding=True, batch=False)
def flat_real_tokens_normalized_together(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = x[mask.bool()]
    y = (real - real.mean(0)) / (real.var(0, unbiased=False) + 1e-5).sqrt()
    return torch.zeros_like(x).masked_scatter(mask[..., None].bool(), y)


@UNSEEN.add(masked=True, padding=False, batch=True, causal=False)
def real_part_reversed_and_back(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    index = (mask.sum(1, keepdim=True) - 1 - torch.arange(t)) % t
    return m.o(_at(m.gru(_at(x, index))[0], index))


@UNSEEN.add(masked=True, padding=False, batch=True)
def whole_row_reversed_and_back(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(m.gru(x.flip(1))[0].flip(1) * mask[..., None])


@UNSEEN.add(masked=True, padding=True, batch=True, right=True)
def rows_moved_to_the_right_edge(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    index = (torch.arange(t) - (t - mask.sum(1, keepdim=True))) % t
    seen = mask.gather(1, index)[:, None].bool() & ~later(t)
    return _attend(m, _at(x, index), seen)[:, -1]


@UNSEEN.add(masked=True, padding=True, batch=True)
def packed_by_a_sort_then_convolved(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real, order = mask.sort(dim=1, descending=True, stable=True)
    packed = _at(x, order) * real[..., None]
    return _at(m.conv(F.pad(packed.mT, (2, 0))).mT, order.argsort(1))


@UNSEEN.add(masked=True, padding=True, batch=True, permutation=False)
def windows_counted_in_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    count = mask.cumsum(1)
    near = (count[:, :, None] - count[:, None]).abs() <= 2
    return _attend(m, x, near & mask[:, None].bool())


@UNSEEN.add(masked=True, padding=True, batch=True)
def first_half_of_the_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    count = mask.cumsum(1)
    half = mask * (2 * count <= count[:, -1:] + 1)
    return m.o((x * half[..., None]).sum(1) / half.sum(1, keepdim=True).clamp(min=1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def first_half_by_the_number_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    half = mask.sum(1, keepdim=True) // 2
    weight = (torch.arange(x.shape[1]) < half).to(x.dtype)
    return m.o((x * weight[..., None]).sum(1) / half.clamp(min=1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def pads_repeat_the_last_real_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    index = torch.where(mask.bool(), i, 0).cummax(1).values
    filled = _at(x, index)
    return x + m.o(filled.mean(1, keepdim=True))


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def token_before_if_it_is_real(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    before, real = F.pad(x[:, :-1], (0, 0, 1, 0)), F.pad(mask[:, :-1], (1, 0))
    return m.q(x) + m.k(before) * real[..., None]


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def token_before_if_this_one_is_real(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    before = F.pad(x[:, :-1], (0, 0, 1, 0))
    return (m.q(x) + m.k(before)) * mask[..., None]


@UNSEEN.add(masked=True, padding=True, batch=True)
def runs_of_the_mask_as_segments(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    changes = F.pad((mask[:, 1:] != mask[:, :-1]).long(), (1, 0)).cumsum(1)
    return _attend(m, x, changes[:, :, None] == changes[:, None])


@UNSEEN.add(masked=True, padding=True, batch=True, causal=False)
def padded_to_a_multiple_of_four(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, _ = x.shape
    more = -t % 4
    blocks = F.pad(x, (0, 0, 0, more)).view(-1, 4, WIDTH)
    real = F.pad(mask, (0, more)).view(-1, 1, 4)
    return _attend(m, blocks, real > 0).view(b, t + more, WIDTH)[:, :t]
