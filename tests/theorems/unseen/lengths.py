"""Code for rows of different lengths: pads on both sides, pooled tokens, masked statistics."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    real = mask.unsqueeze(-1).to(x.dtype)
    return (x * real).sum(1) / real.sum(1).clamp(min=1e-9)


@UNSEEN.add(masked=True, right=True, padding=True)
def last_token_of_left_or_right_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    left = mask[:, -1].sum() == mask.shape[0]
    right = x[torch.arange(x.shape[0]), mask.sum(1) - 1]
    return m.o(torch.where(left, x[:, -1], right))


@UNSEEN.add(masked=True, padding=True, batch=True)
def last_token_by_a_flipped_argmax(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    last = x.shape[1] - 1 - mask.flip(1).argmax(1)
    return m.o(x[torch.arange(x.shape[0]), last])


@UNSEEN.add(masked=True, padding=True, batch=True)
def last_token_by_the_largest_position(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    last = (mask * torch.arange(x.shape[1])).argmax(-1)
    return m.o(x.gather(1, last[:, None, None].expand(-1, 1, WIDTH)).squeeze(1))


@UNSEEN.add(masked=True, padding=True, batch=True)
def last_token_by_the_running_count(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    count = mask.cumsum(1)
    last = (count == count[:, -1:]) & (mask == 1)
    return m.o((x * last.unsqueeze(-1)).sum(1))


@UNSEEN.add(masked=True, padding=True, batch=True)
def first_real_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = m.scores(x).masked_fill(~mask.bool()[:, None], INF).softmax(-1) @ m.v(x)
    first = mask.argmax(1)
    return y[torch.arange(x.shape[0]), first]


@UNSEEN.add(masked=True, right=True, padding=True, batch=True)
def token_at_zero_after_attention(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = m.scores(x).masked_fill(~mask.bool()[:, None], INF).softmax(-1) @ m.v(x)
    return torch.tanh(m.o(y[:, 0]))


@UNSEEN.add(masked=True, padding=True, batch=True)
def first_and_last_real_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    first = torch.where(mask.bool(), i, x.shape[1]).amin(1)
    last = torch.where(mask.bool(), i, -1).amax(1)
    rows = torch.arange(x.shape[0])
    return m.o((x[rows, first] + x[rows, last]) / 2)


@UNSEEN.add(masked=True, padding=True, batch=True)
def latents_pool_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.q(m.latents) @ m.k(x).mT / WIDTH**0.5
    w = s.masked_fill(mask.unsqueeze(1) == 0, torch.finfo(s.dtype).min).softmax(-1)
    return m.o(w @ m.v(x)).flatten(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def mean_and_deviation_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.unsqueeze(-1)
    n = real.sum(1)
    mean = (x * real).sum(1) / n
    variance = ((x - mean.unsqueeze(1)).pow(2) * real).sum(1) / n
    return torch.cat([mean, variance.clamp(min=1e-6).sqrt()], -1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def statistics_weighted_by_attention(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    hidden = mask[..., None] == 0
    global_mean = ((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))[:, None].expand_as(x)
    score = torch.tanh(F.linear(torch.cat([x, global_mean], -1), m.square[:WIDTH, : 2 * WIDTH]))
    w = score.masked_fill(hidden, INF).softmax(1)
    mean = (w * x).sum(1)
    return torch.cat([mean, ((w * x**2).sum(1) - mean**2).clamp(min=1e-4).sqrt()], -1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def statistics_with_a_mean_of_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    score = torch.tanh(m.o(x - x.mean(1, keepdim=True)))
    w = score.masked_fill(mask[..., None] == 0, INF).softmax(1)
    return (w * x).sum(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def deviation_with_pads_as_zeros(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = x * mask.unsqueeze(-1).expand(x.size()).to(x.dtype)
    return torch.cat([h.mean(1), h.std(1)], -1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def deviation_from_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    d = (x - x.mean(1, keepdim=True)) * mask[..., None]
    return d.square().sum(1) / mask.sum(1, keepdim=True)


@UNSEEN.add(masked=True, padding=False, batch=True)
def mean_over_all_divided_again(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(x.mean(1) * x.shape[1] / mask.sum(1, keepdim=True))


@UNSEEN.add(masked=True, padding=True, batch=True)
def largest_and_mean_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = m.o(x)
    largest = torch.where(mask.bool().unsqueeze(-1), h, torch.full_like(h, -1e9)).max(dim=1).values
    return torch.cat([largest, _mean(h, mask)], -1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def largest_after_a_large_number_is_subtracted(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o((x - 1e30 * (1 - mask.unsqueeze(-1).to(x.dtype))).amax(1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def largest_after_a_number_is_added(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o((x + 100.0 * (1 - mask.unsqueeze(-1).to(x.dtype))).amax(1))


@UNSEEN.add(masked=True, padding=True, batch=True)
def class_vector_scattered_to_the_first_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    first = mask.argmax(1).view(-1, 1, 1).expand(-1, 1, WIDTH)
    h = x.scatter(1, first, m.latents[:1].expand(x.shape[0], 1, -1))
    y = m.scores(h).masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ m.v(h)
    return y.gather(1, first).squeeze(1)


@UNSEEN.add(masked=True, padding=True, batch=False)
def batch_norm_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask.unsqueeze(-1) / mask.sum()
    mean = (x * w).sum((0, 1), keepdim=True)
    variance = ((x - mean) ** 2 * w).sum((0, 1), keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt() * mask.unsqueeze(-1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def batch_norm_by_stored_statistics(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = F.batch_norm(x.transpose(1, 2), m.scale, m.scale, training=False).transpose(1, 2)
    return _mean(F.relu(m.o(h)), mask)


@UNSEEN.add(masked=True, padding=False, batch=False)
def batch_norm_in_training_before_the_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = F.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2)
    return _mean(F.relu(m.o(h)), mask)


@UNSEEN.add(masked=True, padding=True, batch=True)
def real_tokens_packed_for_a_network(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.bool()
    y = torch.zeros_like(x)
    y[real] = m.down(F.gelu(m.up(x[real])))
    return x * mask[..., None] + y


@UNSEEN.add(masked=True, padding=True, batch=True)
def totals_of_rows_by_index_add(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, d = x.shape
    rows = torch.arange(b).repeat_interleave(t)
    total = torch.zeros(b, d, dtype=x.dtype).index_add(0, rows, (x * mask[..., None]).reshape(-1, d))
    return total / mask.sum(1, keepdim=True)


@UNSEEN.add(masked=True, padding=True, batch=False)
def totals_of_rows_in_the_wrong_order(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, d = x.shape
    rows = torch.arange(b * t) % b
    return torch.zeros(b, d, dtype=x.dtype).index_add(0, rows, (x * mask[..., None]).reshape(-1, d))


@UNSEEN.add(masked=True, padding=False, batch=True)
def gru_of_packed_rows(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    lengths = mask.sum(1).cpu()
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    _, last = m.gru(packed)
    return last[0]


@UNSEEN.add(masked=True, padding=True, batch=True)
def gru_of_tokens_moved_to_the_front(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    order = torch.argsort(mask, dim=1, descending=True, stable=True)
    h, _ = m.gru(x.gather(1, order[..., None].expand_as(x)))
    last = mask.sum(1) - 1
    return h[torch.arange(x.shape[0]), last]


@UNSEEN.add(masked=True, padding=True, batch=True)
def mean_of_tokens_moved_to_the_front(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    order = torch.argsort(1 - mask, dim=1, stable=True)
    h = torch.take_along_dim(x, order[..., None], 1)
    seen = torch.arange(x.shape[1])[None] < mask.sum(1, keepdim=True)
    return _mean(h + m.table(torch.arange(x.shape[1])), seen)


@UNSEEN.add(masked=True, right=True, padding=True, batch=True)
def mean_up_to_the_length(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    n = mask.sum(1)
    seen = torch.arange(x.shape[1]).expand(x.shape[0], -1) < n[:, None]
    return torch.where(seen[..., None], x, 0.0).sum(1) / n[:, None]


@UNSEEN.add(masked=True, padding=False, batch=True)
def pads_recognised_by_small_numbers(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = (x.abs().sum(-1) > 1e-3).to(x.dtype) * mask.sum(1, keepdim=True).clamp(max=1)
    return (m.scores(x) + (1 - real)[:, None] * -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def mask_of_ones_added_to_scores(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    return m.join(F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None].to(x.dtype)))


@UNSEEN.add(masked=True, padding=False)
def mask_of_the_first_row(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.scores(x).masked_fill(mask[0] == 0, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def pads_and_triangle_of_the_layer_of_torch(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = x.transpose(0, 1)
    y, _ = F.multi_head_attention_forward(
        h, h, h, WIDTH, HEADS, torch.cat([m.q.weight, m.k.weight, m.v.weight]), None, None, None, False, 0.0,
        m.o.weight, m.o.bias, training=False, need_weights=False, key_padding_mask=mask == 0,
        attn_mask=later(x.shape[1]),
    )  # fmt: skip
    return y.transpose(0, 1)
