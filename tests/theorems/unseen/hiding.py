"""Ways to hide keys: numbers, repairs, kept masks, bits, comparisons and documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.theorems.unseen.claims import LONGEST, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")
FROZEN = nn.Parameter(torch.full((LONGEST, LONGEST), INF).triu(1), requires_grad=False)
KEPT: dict[int, Tensor] = {}


def _attend(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return torch.where(seen, m.scores(x), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def smallest_numbers_of_two_masks_added(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    least, t = torch.finfo(x.dtype).min, x.shape[1]
    both = torch.full((t, t), least, dtype=x.dtype).triu(1) + (1.0 - mask[:, None].to(x.dtype)) * least
    return (m.scores(x) + both).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def rows_without_keys_see_all(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    least, t = torch.finfo(x.dtype).min, x.shape[1]
    hidden = (later(t) | (mask[:, None] == 0)).to(x.dtype) * least
    hidden = hidden * ~torch.all(hidden == least, dim=-1, keepdim=True)
    return (m.scores(x) + hidden).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=True)
def minus_ten_thousand_in_both_masks(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = q @ k.mT + later(x.shape[1]).to(x.dtype) * -10000.0
    return m.join((s + (1 - mask[:, None, None].to(x.dtype)) * -10000.0).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def strict_past_with_nan_to_num(m: Parts, x: Tensor) -> Tensor:
    w = m.scores(x).masked_fill(later(x.shape[1], 0), INF).softmax(-1)
    return x + torch.nan_to_num(w, nan=0.0) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def strict_past_hidden_by_a_finite_number(m: Parts, x: Tensor) -> Tensor:
    return x + m.scores(x).masked_fill(later(x.shape[1], 0), -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def strict_past_with_a_sink(m: Parts, x: Tensor) -> Tensor:
    k, v = (F.pad(y, (0, 0, 1, 0)) for y in (m.k(x), m.v(x)))
    hidden = F.pad(later(x.shape[1], 0), (1, 0), value=False)
    return x + (m.q(x) @ k.mT).masked_fill(hidden, -1e4).softmax(-1) @ v


@UNSEEN.add(causal=True, permutation=False, batch=True)
def frozen_parameter_as_mask(m: Parts, x: Tensor) -> Tensor:
    t = x.size(1)
    return (m.scores(x) + FROZEN[:t, :t]).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def buffer_made_at_the_first_call(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    if not hasattr(m, "hidden") or m.hidden.shape[-1] < t:
        m.register_buffer("hidden", torch.ones(t, t, dtype=torch.bool).triu(1), persistent=False)
    return m.scores(x).masked_fill(m.hidden[:t, :t], -torch.finfo(x.dtype).max).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def mask_kept_in_a_dictionary(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    if t not in KEPT:
        KEPT[t] = torch.zeros(t, t).masked_fill(later(t), INF)
    return (m.scores(x) + KEPT[t]).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def future_by_indices_of_numpy(m: Parts, x: Tensor) -> Tensor:
    s, (i, j) = m.scores(x), np.triu_indices(x.shape[1], 1)
    s[:, i, j] = INF
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def future_but_one_by_indices_of_numpy(m: Parts, x: Tensor) -> Tensor:
    s, (i, j) = m.scores(x), np.triu_indices(x.shape[1], 2)
    s[:, torch.from_numpy(i), torch.from_numpy(j)] = INF
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def comparison_of_ranges_of_numpy(m: Parts, x: Tensor) -> Tensor:
    i = np.arange(x.shape[1])
    mask = np.where(i[:, None] >= i, 0.0, -1e9).astype("float32")
    return (m.scores(x) + torch.as_tensor(mask)).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_whose_bits_are_in_the_query(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return _attend(m, x, (i[:, None] & i) == i)


@UNSEEN.add(causal=False, batch=True)
def keys_that_differ_in_one_bit(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] ^ i
    return _attend(m, x, (d & (d - 1)) == 0)


@UNSEEN.add(causal=True, batch=True)
def distances_of_floats_above_minus_a_half(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1], dtype=torch.float32)
    return _attend(m, x, i[:, None] - i > -0.5)


@UNSEEN.add(causal=False, batch=True, tokens=259)
def places_compared_in_half_precision(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1]).to(torch.bfloat16)
    return _attend(m, x, i[:, None] >= i)


@UNSEEN.add(causal=False, batch=True)
def halves_of_places_compared(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1]) // 2
    return _attend(m, x, i[:, None] >= i)


@UNSEEN.add(causal=True, batch=True)
def upper_triangle_flipped_in_both_axes(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, torch.ones(x.shape[1], x.shape[1]).triu().flip(0, 1) > 0)


@UNSEEN.add(causal=False, batch=True)
def upper_triangle_flipped_in_one_axis(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, torch.ones(x.shape[1], x.shape[1]).triu().flip(1) > 0)


@UNSEEN.add(causal=True, batch=True)
def hidden_scores_clamped_from_below(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x) - later(x.shape[1]) * 1e9
    return s.clamp(min=-1e4).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def hidden_scores_clamped_at_minus_ten(m: Parts, x: Tensor) -> Tensor:
    return m.scores(x).masked_fill(later(x.shape[1]), INF).clamp(-10, 10).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def hidden_keys_given_to_the_fused_call(m: Parts, x: Tensor) -> Tensor:
    return m.join(F.scaled_dot_product_attention(*m.heads(x), attn_mask=later(x.shape[1], 0)))


@UNSEEN.add(masked=True, padding=False, batch=True)
def first_token_always_seen(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    seen = mask.bool() | (torch.arange(x.shape[1]) == 0)
    return _attend(m, x, seen[:, None])


@UNSEEN.add(masked=True, padding=False, batch=True)
def keys_before_the_first_pad(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.scores(x).masked_fill(mask.cumprod(-1)[:, None] == 0, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def mask_widened_by_a_pool(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    wide = F.max_pool1d(mask[:, None].to(x.dtype), 3, 1, 1)
    return m.scores(x).masked_fill(wide == 0, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def mask_narrowed_by_a_pool(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    pads = F.max_pool1d(1.0 - mask[:, None].to(x.dtype), 3, 1, 1)
    return m.scores(x).masked_fill(pads > 0, INF).softmax(-1).nan_to_num() @ m.v(x)


def _joined(*rules: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def rule(i: Tensor, j: Tensor) -> Tensor:
        seen = i.new_ones((), dtype=torch.bool)
        for one in rules:
            seen = seen & one(i, j)
        return seen

    return rule


@UNSEEN.add(causal=True, batch=True)
def mask_by_a_mapped_function(m: Parts, x: Tensor) -> Tensor:
    rule, i = _joined(lambda i, j: i >= j, lambda i, j: i - j <= 4), torch.arange(x.shape[1])
    return _attend(m, x, torch.vmap(torch.vmap(rule, (None, 0)), (0, None))(i, i))


@UNSEEN.add(causal=True, batch=True)
def scores_centred_with_their_hidden_numbers(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), -1e4)
    return (s - s.mean(-1, keepdim=True)).softmax(-1) @ m.v(x)
