"""Programs in which a token sees a later one, each with a causal one."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.pair import BLIND, CAUSAL, Pair, plain
from tests.diagnosis.corpus.parts import LOWEST, causal, conv, counted, past, scores, shifted
from tests.diagnosis.walking import WIDTH, Function


def masked_by(change: Callable[[Tensor, Tensor], Tensor]) -> Function:
    """Attention whose weights come from the scores and the mask in some way."""
    return plain(lambda x: change(scores(x), past(x)) @ x)


def quantised(x: Tensor, scale: Tensor) -> Tensor:
    return (x / scale * 7).round() * scale / 7


def expert_choice(x: Tensor) -> Tensor:
    index = x.sum(-1).topk(2, dim=1).indices[..., None].expand(-1, -1, x.shape[-1])
    return x.scatter_add(1, index, x.gather(1, index).tanh())


def token_choice(x: Tensor) -> Tensor:
    least = x.topk(2, dim=-1).values[..., -1:]
    return x + x.masked_fill(x < least, -torch.inf).softmax(-1)


def heads(x: Tensor, mask: Tensor) -> Tensor:
    split = x.unflatten(-1, (2, -1)).transpose(1, 2)
    weights = (split @ split.transpose(-1, -2)).masked_fill(mask, -torch.inf).softmax(-1)
    return (weights @ split).transpose(1, 2).flatten(2)


def only(x: Tensor, axis: int) -> Tensor:
    """The causal mask for one batch row, or one head, only: [2, 1, n, n] or [1, 2, n, n]."""
    which = torch.tensor([True, False]).view([2 if d == axis else 1 for d in range(4)])
    return past(x) & which


def summary(x: Tensor, first: Tensor) -> Tensor:
    """Attention in which every token also sees one more key and value."""
    keys = torch.cat([first.expand(x.shape[0], 1, -1), x], 1)
    hidden = F.pad(past(x), (1, 0))
    return (x @ keys.transpose(1, 2)).masked_fill(hidden, -torch.inf).softmax(-1) @ keys


def normed(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return (x - x.mean(dims, keepdim=True)) * (x.var(dims, keepdim=True) + 1e-5).rsqrt()


def only_the_best(x: Tensor, seen: Tensor) -> Tensor:
    """Causal attention that favours scores at least as large as the second largest of those looked at."""
    best = seen.topk(2, -1).values[..., -1:]
    s = torch.where(scores(x) < best, scores(x) - 3, scores(x))
    return s.masked_fill(past(x), -torch.inf).softmax(-1) @ x


def favoured(x: Tensor, dim: int) -> Tensor:
    """The features of the best groups only, and the groups are chosen along one dimension."""
    chosen = torch.zeros_like(x).scatter(dim, x.topk(2, dim).indices, 1.0)
    return x.masked_fill(chosen == 0, 0.0)


def decayed(x: Tensor, decay: Tensor) -> Tensor:
    """Linear attention with weights that fall with the distance."""
    return (scores(x) * decay) @ x


def decay(x: Tensor) -> Tensor:
    """[token, token]: 0.7 to the power of the distance."""
    place = torch.arange(x.shape[1])
    return 0.7 ** (place[None] - place[:, None]).abs().float()


def best_written(x: Tensor, seen: Tensor, value: float) -> Tensor:
    """1 where a number written over the best of the scores, times zero where a key is hidden, is none."""
    written = scores(x).scatter(-1, seen.topk(1, -1).indices, value) * ~past(x)
    return causal(x) + written.isnan().any(-1, keepdim=True).to(x.dtype)


def put(x: Tensor, dim: int, where: Tensor) -> Tensor:
    """A zero written at index 0 or 1 of one dimension, as the sign of a number says."""
    y = x.clone()
    y[(slice(None),) * dim + ((where > 0).long(),)] = 0.0
    return y


def paired(x: Tensor, other: Tensor) -> Tensor:
    """Each feature with another as one complex number, turned by a quarter."""
    made = torch.view_as_complex(torch.stack([x, other], -1)) * torch.view_as_complex(torch.tensor([0.0, 1.0]))
    return torch.view_as_real(made)[..., 0]


CAUSALITY = [
    Pair("no_mask", "causal", BLIND, CAUSAL),
    Pair(
        "future_behind_a_gate_that_starts_at_zero",
        "causal",
        lambda x, zero, *_: causal(x) + zero[0].tanh() * x.flip(1),
        lambda x, zero, *_: causal(x) + zero[0].tanh() * x.cumsum(1),
        weights="random",
    ),
    Pair(
        "mask_off_by_one",
        "causal",
        masked_by(lambda s, m: s.masked_fill(m.roll(-1, 0).triu(1), -1e30).softmax(-1)),
        masked_by(lambda s, m: s.masked_fill(m, -1e30).softmax(-1)),
    ),
    Pair(
        "mask_the_wrong_way_round",
        "causal",
        masked_by(lambda s, m: s.masked_fill(m.T, -torch.inf).softmax(-1)),
        CAUSAL,
    ),
    Pair("mask_after_the_softmax", "causal", masked_by(lambda s, m: s.softmax(-1).masked_fill(m, 0.0)), CAUSAL),
    Pair("mask_times_scores", "causal", masked_by(lambda s, m: (s * ~m).softmax(-1)), CAUSAL),
    Pair("scores_masked_with_zero", "causal", masked_by(lambda s, m: s.masked_fill(m, 0.0).softmax(-1)), CAUSAL),
    Pair(
        "mask_of_minus_10000",
        "causal",
        masked_by(lambda s, m: s.masked_fill(m, -1e4).softmax(-1)),
        masked_by(lambda s, m: (s + torch.zeros(m.shape).masked_fill(m, LOWEST)).softmax(-1)),
        verdict="undecided",
    ),
    Pair(
        "softmax_over_the_wrong_axis",
        "causal",
        masked_by(lambda s, m: s.masked_fill(m, -torch.inf).softmax(-2)),
        masked_by(lambda s, m: s.masked_fill(m, -torch.inf).softmax(-1)),
    ),
    Pair(
        "finite_mask_with_a_row_wholly_masked",
        "causal",
        masked_by(lambda s, m: (s + torch.zeros(m.shape).masked_fill((~m).tril(-1).logical_not(), LOWEST)).softmax(-1)),
        masked_by(lambda s, m: (s + torch.zeros(m.shape).masked_fill(m, LOWEST)).softmax(-1)),
    ),
    Pair("mask_on_one_head", "causal", plain(lambda x: heads(x, only(x, 1))), plain(lambda x: heads(x, past(x)))),
    Pair("mask_on_one_row", "causal", plain(lambda x: heads(x, only(x, 0))), plain(lambda x: heads(x, past(x)))),
    Pair(
        "summary_of_all_tokens_among_the_keys",
        "causal",
        plain(lambda x: summary(x, x.mean(1, keepdim=True))),
        lambda x, zero, one, *_: summary(x, one[:1]),
    ),
    Pair(
        "renormalised_after_the_softmax",
        "causal",
        masked_by(lambda s, m: s.softmax(-1) * ~m / (s.softmax(-1) * ~m).sum(-1, keepdim=True)),
        CAUSAL,
        verdict="undecided",
    ),
    Pair(
        "largest_score_subtracted",
        "causal",
        masked_by(lambda s, m: (s - s.amax((1, 2), keepdim=True)).masked_fill(m, -torch.inf).softmax(-1)),
        masked_by(
            lambda s, m: (s - s.masked_fill(m, 0.0).amax(-1, keepdim=True)).masked_fill(m, -torch.inf).softmax(-1)
        ),
        verdict="undecided",
    ),
    Pair(
        "total_less_the_future",
        "causal",
        plain(lambda x: x.sum(1, keepdim=True) - x.flip(1).cumsum(1).flip(1) + x),
        plain(lambda x: x.cumsum(1)),
        verdict="undecided",
    ),
    Pair("best_scores_of_all_keys", "causal", plain(lambda x: only_the_best(x, scores(x))), CAUSAL),
    Pair(
        "scale_of_the_whole_tensor",
        "causal",
        plain(lambda x: quantised(x, x.abs().amax())),
        plain(lambda x: quantised(x, x.abs().amax(-1, keepdim=True)) + causal(x)),
    ),
    Pair("experts_choose_tokens", "causal", plain(expert_choice), plain(lambda x: token_choice(causal(x)))),
    Pair("groups_of_tokens_chosen", "causal", plain(lambda x: favoured(x, 1)), plain(lambda x: favoured(x, 2))),
    Pair(
        "decay_into_the_future",
        "causal",
        plain(lambda x: decayed(x, decay(x))),
        plain(lambda x: decayed(x, decay(x).tril())),
    ),
    Pair(
        "infinity_written_where_data_say",
        "causal",
        plain(lambda x: best_written(x, scores(x), -torch.inf)),
        plain(lambda x: best_written(x, scores(x).tril(), 1.0)),
    ),
    Pair(
        "scores_clamped_to_the_mask",
        "causal",
        masked_by(lambda s, m: s.clamp(max=-1e9).masked_fill(m, -1e9).softmax(-1)),
        masked_by(lambda s, m: s.clamp(min=-1e9, max=torch.inf).masked_fill(m, -1e30).softmax(-1)),
    ),
    Pair(
        "complex_number_made_of_two_tokens",
        "causal",
        plain(lambda x: paired(x, x.flip(1))),
        plain(lambda x: paired(x, x.flip(2))),
    ),
    Pair(
        "token_written_at_a_place_that_data_say",
        "causal",
        plain(lambda x: put(x, 1, x[0, -1, :1])),
        plain(lambda x: put(x, 2, x[0, 0, :1])),
    ),
    Pair(
        "zero_sums_of_all_tokens",
        "causal",
        plain(lambda x: x * (scores(x).tril(-1)).sum(-2, keepdim=True).transpose(1, 2)),
        plain(lambda x: x * (scores(x).tril(-1)).sum(-1, keepdim=True)),
    ),
    Pair(
        "mean_of_all_tokens",
        "causal",
        plain(lambda x: x + x.mean(1, keepdim=True)),
        plain(lambda x: x.cumsum(1) / counted(x)),
    ),
    Pair(
        "norm_with_statistics_of_the_sequence",
        "causal",
        plain(lambda x: normed(x, (1, 2))),
        plain(lambda x: normed(causal(x), (2,))),
    ),
    Pair(
        "instance_norm",
        "causal",
        plain(lambda x: F.instance_norm(x.transpose(1, 2)).transpose(1, 2)),
        plain(lambda x: F.layer_norm(causal(x), (WIDTH,))),
    ),
    Pair(
        "group_norm_over_tokens",
        "causal",
        plain(lambda x: F.group_norm(x.transpose(1, 2), 2).transpose(1, 2)),
        plain(lambda x: F.group_norm(causal(x).flatten(0, 1), 2).view(x.shape)),
    ),
    Pair(
        "batch_norm_in_training",
        "causal",
        plain(lambda x: F.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2)),
        lambda x, zero, one, *_: F.batch_norm(causal(x).transpose(1, 2), one[0], one[1].square()).transpose(1, 2),
    ),
    Pair("fourier_transform", "causal", plain(lambda x: torch.fft.fft(x, dim=1).real), CAUSAL),
    Pair(
        "centred_convolution",
        "causal",
        lambda x, zero, one, square, kernel, *_: conv(x, kernel, (1, 1)),
        lambda x, zero, one, square, kernel, *_: conv(x, kernel, (2, 0)),
    ),
    Pair("roll", "causal", plain(lambda x: x + x.roll(1, 1)), plain(shifted)),
    Pair(
        "running_sum_from_the_end", "causal", plain(lambda x: x.flip(1).cumsum(1).flip(1)), plain(lambda x: x.cumsum(1))
    ),
    Pair(
        "pooling_over_windows",
        "causal",
        plain(lambda x: F.avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)),
        CAUSAL,
    ),
    Pair(
        "largest_of_windows",
        "causal",
        plain(lambda x: F.max_pool2d(x[:, None], (3, 1), 1, (1, 0))[:, 0]),
        plain(lambda x: F.max_pool2d(F.pad(x, (0, 0, 2, 0), value=-9.0)[:, None], (3, 1), 1)[:, 0]),
    ),
    Pair("sorted_tokens", "causal", plain(lambda x: x.sort(1).values), plain(lambda x: causal(x).sort(-1).values)),
    Pair("last_token_added", "causal", plain(lambda x: x + x[:, -1:]), plain(lambda x: x + x[:, :1])),
    Pair(
        "number_taken_from_the_data",
        "causal",
        plain(lambda x: x * float(x[0, -1, 0].item())),
        plain(lambda x: x * x[:, :1, :1]),
    ),
    Pair(
        "zeros_times_uninitialised_memory",
        "causal",
        plain(lambda x: x + torch.empty_like(x) * torch.zeros_like(x)),
        plain(lambda x: x + torch.empty_like(x).copy_(x) * torch.zeros_like(x)),
        verdict="undecided",
    ),
    Pair(
        "uninitialised_memory",
        "causal",
        plain(lambda x: x + 0 * torch.empty_like(x)),
        plain(lambda x: x + torch.zeros_like(x).cumsum(1)),
        verdict="undecided",
    ),
]
