"""Programs that use an attention mask for something else than hiding pads."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.attack import Attack
from tests.diagnosis.corpus.attacks_on_positions import rows_of
from tests.diagnosis.corpus.parts import added, attend, scores
from tests.diagnosis.walking import TOKENS, WIDTH


def keys(mask: Tensor) -> Tensor:
    """Pads, as keys that no token sees."""
    return (mask == 0)[:, None, :]


def low(mask: Tensor) -> Tensor:
    """The most negative number where the mask is 0."""
    return (1 - mask) * torch.finfo(torch.float32).min


def seen(x: Tensor, mask: Tensor) -> Tensor:
    """Torch's attention under a mask of what is seen, or to be added."""
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def sink(x: Tensor, mask: Tensor, entry: Tensor) -> Tensor:
    """Attention that hides pads, with one more score in each line."""
    s = scores(x).masked_fill(keys(mask), -torch.inf)
    return torch.cat([s, entry.expand(x.shape[0], x.shape[1], 1)], -1).softmax(-1)[..., :-1] @ x


def conv(x: Tensor) -> Tensor:
    """A window of three tokens."""
    return F.conv1d(F.pad(x.transpose(1, 2), (1, 1)), torch.ones(WIDTH, WIDTH, 3)).transpose(1, 2)


PADDING = [
    Attack(
        "pads_read_at_real_tokens",
        "padding",
        lambda x, m: x.mean(1, keepdim=True) * m[..., None],
        lambda x, m: attend(x, keys(m)) * m[..., None],
    ),
    Attack(
        "sum_of_the_pads",
        "padding",
        lambda x, m: (x * (1 - m)[..., None]).sum(1, keepdim=True).expand(x.shape),
        lambda x, m: (x * m[..., None]).sum(1, keepdim=True).expand(x.shape),
    ),
    Attack(
        "mean_over_pads",
        "padding",
        lambda x, m: attend(x, keys(m)) + x.mean(1, keepdim=True),
        lambda x, m: attend(x, keys(m)) + (x * m[..., None]).sum(1, keepdim=True) / m.sum(1)[:, None, None],
    ),
    Attack(
        "scores_times_mask",
        "padding",
        lambda x, m: (scores(x) * m[:, None]).softmax(-1) @ x,
        lambda x, m: added(x, low(m)[:, None]),
    ),
    Attack(
        "mask_of_minus_10000",
        "padding",
        lambda x, m: added(x, (1 - m)[:, None] * -1e4),
        lambda x, m: added(x, 2 * low(m)[:, None]),
    ),
    Attack(
        "mask_of_the_queries_twice",
        "padding",
        lambda x, m: added(x, low(m)[:, :, None] + low(m)[:, :, None]),
        lambda x, m: added(x, low(m)[:, None] + low(m)[:, None]),
    ),
    Attack("mask_upside_down", "padding", lambda x, m: attend(x, ~keys(m)), lambda x, m: attend(x, keys(m))),
    Attack(
        "rows_wholly_hidden_and_looked_at",
        "padding",
        lambda x, m: attend(attend(x, keys(m) | keys(m).mT).nan_to_num() + x, keys(m[:1]).expand(2, -1, -1)),
        lambda x, m: attend(attend(x, keys(m)) + x, keys(m)),
    ),
    Attack(
        "pads_that_are_no_number",
        "padding",
        lambda x, m: attend(attend(x, keys(m) | keys(m).mT), keys(m)),
        lambda x, m: seen(seen(x, ~(keys(m) | keys(m).mT)), ~keys(m).expand(-1, TOKENS, -1)),
    ),
    Attack(
        "torch_with_a_mask_of_queries",
        "padding",
        lambda x, m: seen(x, (m != 0)[:, :, None].expand(-1, -1, TOKENS)),
        lambda x, m: seen(x, (m != 0)[:, None].expand(-1, TOKENS, -1)),
    ),
    Attack(
        "mask_of_ones_and_zeros_added",
        "padding",
        lambda x, m: seen(x, m.to(x.dtype)[:, None].expand(-1, TOKENS, -1)),
        lambda x, m: seen(x, low(m).to(x.dtype)[:, None].expand(-1, TOKENS, -1)),
    ),
    Attack(
        "largest_of_the_pads_too",
        "padding",
        lambda x, m: x + x.masked_fill((m != 0)[..., None], -torch.inf).amax(1, keepdim=True),
        lambda x, m: x + x.masked_fill((m == 0)[..., None], -torch.inf).amax(1, keepdim=True),
    ),
    Attack("mask_of_the_first_row", "padding", lambda x, m: attend(x, keys(m[:1])), lambda x, m: attend(x, keys(m))),
    Attack(
        "tokens_backwards", "padding", lambda x, m: attend(x, keys(m)).flip(1), lambda x, m: attend(x, keys(m)).flip(2)
    ),
    Attack("window_over_pads", "padding", lambda x, m: conv(x), lambda x, m: conv(x * m[..., None])),
    Attack(
        "sink_of_pads",
        "padding",
        lambda x, m: sink(x, m, x.mean((1, 2), keepdim=True)),
        lambda x, m: sink(x, m, torch.zeros(1)),
    ),
    Attack(
        "pads_sorted_to_the_end",
        "padding",
        lambda x, m: rows_of(x, m.argsort(1, descending=True)),
        lambda x, m: attend(x[:, torch.arange(x.shape[1])], keys(m)),
    ),
    Attack(
        "rows_and_tokens_together",
        "padding",
        lambda x, m: attend(x.reshape(1, -1, WIDTH)).view_as(x),
        lambda x, m: attend(x.reshape(1, -1, WIDTH), (m == 0).reshape(1, 1, -1)).view_as(x),
    ),
]
