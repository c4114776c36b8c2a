"""Programs that depend on the order of the tokens, each with one that does not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.pair import BLIND, CAUSAL, Pair, plain
from tests.diagnosis.corpus.parts import attend, causal, conv, counted, scores, shifted


def written(x: Tensor, place: tuple[slice | int, ...]) -> Tensor:
    y = x.clone()
    y[place] = 0.0
    return attend(y)


def scaled_in_place(x: Tensor, by: Tensor) -> Tensor:
    x.mul_(by)
    return attend(x)


def biased(x: Tensor, *, signed: bool) -> Tensor:
    place = torch.arange(x.shape[1])
    distance = (place[None] - place[:, None]).float()
    return (scores(x) - 0.3 * (distance if signed else distance.abs())).softmax(-1) @ x


ORDER = [
    Pair(
        "positions_behind_a_zero_scale",
        "permutation",
        lambda x, zero, one, *_: attend(x + zero[:1, :1] * one[: x.shape[1]]),
        lambda x, zero, one, *_: attend(x + zero[:1, :1] * one[:1]),
        weights="random",
    ),
    Pair(
        "position_table_that_starts_at_zero",
        "permutation",
        lambda x, zero, *_: attend(x + zero[: x.shape[1]]),
        lambda x, zero, *_: attend(x + zero[0]),
        weights="random",
    ),
    Pair(
        "running_sum_behind_a_gate_that_starts_at_zero",
        "permutation",
        lambda x, zero, *_: attend(x) + zero[0].tanh() * x.cumsum(1),
        lambda x, zero, *_: attend(x) + zero[0].tanh() * x.sum(1, keepdim=True),
        weights="random",
    ),
    Pair(
        "position_buffer",
        "permutation",
        lambda x, zero, one, square, kernel, ramp, flat: attend(x + ramp[: x.shape[1]]),
        lambda x, zero, one, square, kernel, ramp, flat: attend(x + flat[: x.shape[1]]),
    ),
    Pair(
        "in_place_write_to_one_row",
        "permutation",
        plain(lambda x: written(x, (slice(None), 0))),
        plain(lambda x: written(x, (slice(None), slice(None), 0))),
    ),
    Pair(
        "input_scaled_in_place",
        "permutation",
        lambda x, zero, one, square, kernel, ramp, flat: scaled_in_place(x, 1 + ramp[: x.shape[1]]),
        lambda x, zero, one, square, kernel, ramp, flat: scaled_in_place(x, 1 + flat[: x.shape[1]]),
    ),
    Pair(
        "first_token_read_out",
        "permutation",
        plain(lambda x: attend(x)[:, 0]),
        plain(lambda x: attend(x).mean(1)),
    ),
    Pair(
        "every_other_token",
        "permutation",
        plain(lambda x: attend(x)[:, ::2].mean(1)),
        plain(lambda x: attend(x)[:, :, ::2].mean(1)),
    ),
    Pair(
        "pooling_over_windows",
        "permutation",
        plain(lambda x: F.avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)),
        plain(lambda x: x + x.mean(1, keepdim=True)),
    ),
    Pair(
        "largest_of_windows",
        "permutation",
        plain(lambda x: F.max_pool1d(x.transpose(1, 2), 3, 1, 1).amax(-1) + x[:, 0]),
        plain(lambda x: x.amax(1)),
    ),
    Pair("sorted_tokens", "permutation", plain(lambda x: x.sort(1).values), plain(lambda x: x.sort(-1).values + 0.0)),
    Pair(
        "place_of_the_largest",
        "permutation",
        plain(lambda x: x.argmax(1).to(x.dtype)),
        plain(lambda x: x.argmax(-1).to(x.dtype) + x.sum((1, 2))[:, None]),
    ),
    Pair("fourier_transform", "permutation", plain(lambda x: torch.fft.fft(x, dim=1).real), BLIND),
    Pair(
        "convolution",
        "permutation",
        lambda x, zero, one, square, kernel, *_: conv(x, kernel, (1, 1)),
        lambda x, zero, one, square, kernel, *_: conv(x, kernel[:, :, :1], (0, 0)) + x.mean(1, keepdim=True),
    ),
    Pair("running_sum", "permutation", plain(lambda x: x.cumsum(1)), plain(lambda x: x + x.sum(1, keepdim=True))),
    Pair(
        "place_of_the_largest_two",
        "permutation",
        plain(lambda x: x.topk(2, 1).indices.to(x.dtype).mean(1)),
        plain(lambda x: x.topk(2, 1).values.mean(1)),
    ),
    Pair(
        "fourier_transform_of_tokens_and_features",
        "permutation",
        plain(lambda x: attend(torch.fft.fft2(x).real)),
        plain(lambda x: attend(torch.fft.fft(x, dim=-1).real)),
    ),
    Pair("groups_of_tokens_chosen", "permutation", plain(lambda x: x + x.scatter(1, (x > 0).long(), 2.0)), BLIND),
    Pair("roll", "permutation", plain(lambda x: attend(x + x.roll(1, 1))), plain(lambda x: attend(x + x.roll(1, 2)))),
    Pair("shift_by_one_token", "permutation", plain(lambda x: attend(shifted(x))), plain(lambda x: attend(x + x))),
    Pair("places_counted", "permutation", plain(lambda x: attend(x + 0.2 * counted(x))), BLIND),
    Pair("causal_mask", "permutation", CAUSAL, CAUSAL, twin_law="causal"),
    Pair(
        "bias_by_distance",
        "permutation",
        plain(lambda x: biased(x, signed=False)),
        plain(lambda x: biased(x, signed=False)),
        twin_law="reversal",
    ),
    Pair(
        "number_taken_from_the_data",
        "permutation",
        plain(lambda x: attend(x) * float(x[0, 0, 0].item())),
        plain(lambda x: attend(x) * x[..., 0].mean()),
    ),
    Pair(
        "uninitialised_memory",
        "permutation",
        plain(lambda x: attend(x) + 0 * torch.empty_like(x)),
        plain(lambda x: attend(x) + torch.zeros_like(x)),
        verdict="undecided",
    ),
    Pair(
        "bias_by_signed_distance",
        "reversal",
        plain(lambda x: biased(x, signed=True)),
        plain(lambda x: biased(x, signed=False)),
    ),
    Pair("two_causal_layers", "prompt_permutation", plain(lambda x: causal(x + causal(x))), CAUSAL),
    Pair("the_token_before", "prompt_permutation", plain(shifted), BLIND),
]
