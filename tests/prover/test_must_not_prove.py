"""Models that must not be proved to obey the law they break, each beside a twin that must be.

Where the break shows in numbers the verdict is `refuted`, with a witness. Where it does not (a mask of -10000, a
cancellation the prover rightly does not see) it is `undecided`. The twin keeps the suite from passing by
proving nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import laws
from orderproof.record import Finding
from tests.audit.internals import prove_law
from tests.prover.walking import WIDTH, Program, examine

Function = Callable[..., Tensor]
LOWEST = torch.finfo(torch.float32).min


@dataclass(frozen=True)
class Case:
    """A function that breaks a law, what is expected of it, and the same without the fault."""

    name: str
    law: str
    broken: Function
    twin: Function | None
    verdict: Literal["refuted", "undecided"] = "refuted"
    weights: Literal["given", "random"] = "given"  # of the witness
    twin_law: str = ""  # where the twin obeys another law

    def finding(self, function: Function, law: str) -> Finding:
        (finding,) = prove_law(examine(Program(function, **state())), laws.get(law))
        return finding


def state() -> dict[str, Tensor]:
    """What every program here is given besides x: parameters that start at zero, others, and a buffer."""
    generator = torch.Generator().manual_seed(0)
    return {
        "zero": nn.Parameter(torch.zeros(9, WIDTH)),
        "one": nn.Parameter(torch.randn(9, WIDTH, generator=generator)),
        "square": nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator)),
        "kernel": nn.Parameter(torch.randn(WIDTH, WIDTH, 3, generator=generator)),
        "ramp": torch.arange(9.0)[:, None] * 0.1,
        "flat": torch.full((9, 1), 0.4),
    }


def plain(function: Callable[[Tensor], Tensor]) -> Function:
    """A function of x alone."""
    return lambda x, zero, one, square, kernel, ramp, flat: function(x)


def past(x: Tensor, diagonal: int = 1) -> Tensor:
    """[token, token]: True where a key is hidden."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(diagonal)


def scores(x: Tensor) -> Tensor:
    return x @ x.transpose(1, 2)


def attend(x: Tensor) -> Tensor:
    return scores(x).softmax(-1) @ x


def causal(x: Tensor) -> Tensor:
    return scores(x).masked_fill(past(x), -torch.inf).softmax(-1) @ x


def attending(change: Callable[[Tensor, Tensor], Tensor]) -> Function:
    """Attention whose weights come from the scores and the mask in some way."""
    return plain(lambda x: change(scores(x), past(x)) @ x)


CAUSAL = plain(causal)
BLIND = plain(attend)


def written(x: Tensor, place: tuple[slice | int, ...]) -> Tensor:
    y = x.clone()
    y[place] = 0.0
    return attend(y)


def scaled_in_place(x: Tensor, by: Tensor) -> Tensor:
    x.mul_(by)
    return attend(x)


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


def conv(x: Tensor, kernel: Tensor, padding: tuple[int, int]) -> Tensor:
    return F.conv1d(F.pad(x.transpose(1, 2), padding), kernel).transpose(1, 2)


def only_the_best(x: Tensor, seen: Tensor) -> Tensor:
    """Causal attention that favours scores at least as large as the second largest of those looked at."""
    best = seen.topk(2, -1).values[..., -1:]
    s = torch.where(scores(x) < best, scores(x) - 3, scores(x))
    return s.masked_fill(past(x), -torch.inf).softmax(-1) @ x


def biased(x: Tensor, *, signed: bool) -> Tensor:
    place = torch.arange(x.shape[1])
    distance = (place[None] - place[:, None]).float()
    return (scores(x) - 0.3 * (distance if signed else distance.abs())).softmax(-1) @ x


def counted(x: Tensor) -> Tensor:
    """Each token's place, from a running count of ones."""
    return torch.ones_like(x[..., :1]).cumsum(1)


def shifted(x: Tensor) -> Tensor:
    return x + F.pad(x, (0, 0, 1, 0))[:, :-1]


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


CASES = [
    # ------------------------------------------------------------ order_blind
    Case(
        "positions_behind_a_zero_scale",
        "order_blind",
        lambda x, zero, one, *_: attend(x + zero[:1, :1] * one[: x.shape[1]]),
        lambda x, zero, one, *_: attend(x + zero[:1, :1] * one[:1]),
        weights="random",
    ),
    Case(
        "position_table_that_starts_at_zero",
        "order_blind",
        lambda x, zero, *_: attend(x + zero[: x.shape[1]]),
        lambda x, zero, *_: attend(x + zero[0]),
        weights="random",
    ),
    Case(
        "running_sum_behind_a_gate_that_starts_at_zero",
        "order_blind",
        lambda x, zero, *_: attend(x) + zero[0].tanh() * x.cumsum(1),
        lambda x, zero, *_: attend(x) + zero[0].tanh() * x.sum(1, keepdim=True),
        weights="random",
    ),
    Case(
        "position_buffer",
        "order_blind",
        lambda x, zero, one, square, kernel, ramp, flat: attend(x + ramp[: x.shape[1]]),
        lambda x, zero, one, square, kernel, ramp, flat: attend(x + flat[: x.shape[1]]),
    ),
    Case(
        "in_place_write_to_one_row",
        "order_blind",
        plain(lambda x: written(x, (slice(None), 0))),
        plain(lambda x: written(x, (slice(None), slice(None), 0))),
    ),
    Case(
        "input_scaled_in_place",
        "order_blind",
        lambda x, zero, one, square, kernel, ramp, flat: scaled_in_place(x, 1 + ramp[: x.shape[1]]),
        lambda x, zero, one, square, kernel, ramp, flat: scaled_in_place(x, 1 + flat[: x.shape[1]]),
    ),
    Case(
        "first_token_read_out",
        "order_blind",
        plain(lambda x: attend(x)[:, 0]),
        plain(lambda x: attend(x).mean(1)),
    ),
    Case(
        "every_other_token",
        "order_blind",
        plain(lambda x: attend(x)[:, ::2].mean(1)),
        plain(lambda x: attend(x)[:, :, ::2].mean(1)),
    ),
    Case(
        "pooling_over_windows",
        "order_blind",
        plain(lambda x: F.avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)),
        plain(lambda x: x + x.mean(1, keepdim=True)),
    ),
    Case(
        "largest_of_windows",
        "order_blind",
        plain(lambda x: F.max_pool1d(x.transpose(1, 2), 3, 1, 1).amax(-1) + x[:, 0]),
        plain(lambda x: x.amax(1)),
    ),
    Case("sorted_tokens", "order_blind", plain(lambda x: x.sort(1).values), plain(lambda x: x.sort(-1).values + 0.0)),
    Case(
        "place_of_the_largest",
        "order_blind",
        plain(lambda x: x.argmax(1).to(x.dtype)),
        plain(lambda x: x.argmax(-1).to(x.dtype) + x.sum((1, 2))[:, None]),
    ),
    Case("fourier_transform", "order_blind", plain(lambda x: torch.fft.fft(x, dim=1).real), BLIND),
    Case(
        "convolution",
        "order_blind",
        lambda x, zero, one, square, kernel, *_: conv(x, kernel, (1, 1)),
        lambda x, zero, one, square, kernel, *_: conv(x, kernel[:, :, :1], (0, 0)) + x.mean(1, keepdim=True),
    ),
    Case("running_sum", "order_blind", plain(lambda x: x.cumsum(1)), plain(lambda x: x + x.sum(1, keepdim=True))),
    Case(
        "place_of_the_largest_two",
        "order_blind",
        plain(lambda x: x.topk(2, 1).indices.to(x.dtype).mean(1)),
        plain(lambda x: x.topk(2, 1).values.mean(1)),
    ),
    Case(
        "fourier_transform_of_tokens_and_features",
        "order_blind",
        plain(lambda x: attend(torch.fft.fft2(x).real)),
        plain(lambda x: attend(torch.fft.fft(x, dim=-1).real)),
    ),
    Case("groups_of_tokens_chosen", "order_blind", plain(lambda x: x + x.scatter(1, (x > 0).long(), 2.0)), BLIND),
    Case("roll", "order_blind", plain(lambda x: attend(x + x.roll(1, 1))), plain(lambda x: attend(x + x.roll(1, 2)))),
    Case("shift_by_one_token", "order_blind", plain(lambda x: attend(shifted(x))), plain(lambda x: attend(x + x))),
    Case("places_counted", "order_blind", plain(lambda x: attend(x + 0.2 * counted(x))), BLIND),
    Case("causal_mask", "order_blind", CAUSAL, CAUSAL, twin_law="causal"),
    Case(
        "bias_by_distance",
        "order_blind",
        plain(lambda x: biased(x, signed=False)),
        plain(lambda x: biased(x, signed=False)),
        twin_law="mirror_blind",
    ),
    Case(
        "number_taken_from_the_data",
        "order_blind",
        plain(lambda x: attend(x) * float(x[0, 0, 0].item())),
        plain(lambda x: attend(x) * x[..., 0].mean()),
    ),
    Case(
        "uninitialised_memory",
        "order_blind",
        plain(lambda x: attend(x) + 0 * torch.empty_like(x)),
        plain(lambda x: attend(x) + torch.zeros_like(x)),
        verdict="undecided",
    ),
    # ------------------------------------------------------------ mirror_blind and prompt_blind
    Case(
        "bias_by_signed_distance",
        "mirror_blind",
        plain(lambda x: biased(x, signed=True)),
        plain(lambda x: biased(x, signed=False)),
    ),
    Case("two_causal_layers", "prompt_blind", plain(lambda x: causal(x + causal(x))), CAUSAL),
    Case("the_token_before", "prompt_blind", plain(shifted), BLIND),
    # ------------------------------------------------------------ causal
    Case("no_mask", "causal", BLIND, CAUSAL),
    Case(
        "future_behind_a_gate_that_starts_at_zero",
        "causal",
        lambda x, zero, *_: causal(x) + zero[0].tanh() * x.flip(1),
        lambda x, zero, *_: causal(x) + zero[0].tanh() * x.cumsum(1),
        weights="random",
    ),
    Case(
        "mask_off_by_one",
        "causal",
        attending(lambda s, m: s.masked_fill(m.roll(-1, 0).triu(1), -1e30).softmax(-1)),
        attending(lambda s, m: s.masked_fill(m, -1e30).softmax(-1)),
    ),
    Case(
        "mask_the_wrong_way_round", "causal", attending(lambda s, m: s.masked_fill(m.T, -torch.inf).softmax(-1)), CAUSAL
    ),
    Case("mask_after_the_softmax", "causal", attending(lambda s, m: s.softmax(-1).masked_fill(m, 0.0)), CAUSAL),
    Case("mask_times_scores", "causal", attending(lambda s, m: (s * ~m).softmax(-1)), CAUSAL),
    Case("scores_masked_with_zero", "causal", attending(lambda s, m: s.masked_fill(m, 0.0).softmax(-1)), CAUSAL),
    Case(
        "mask_of_minus_10000",
        "causal",
        attending(lambda s, m: s.masked_fill(m, -1e4).softmax(-1)),
        attending(lambda s, m: (s + torch.zeros(m.shape).masked_fill(m, LOWEST)).softmax(-1)),
        verdict="undecided",
    ),
    Case(
        "softmax_over_the_wrong_axis",
        "causal",
        attending(lambda s, m: s.masked_fill(m, -torch.inf).softmax(-2)),
        attending(lambda s, m: s.masked_fill(m, -torch.inf).softmax(-1)),
    ),
    Case(
        "finite_mask_with_a_row_wholly_masked",
        "causal",
        attending(lambda s, m: (s + torch.zeros(m.shape).masked_fill((~m).tril(-1).logical_not(), LOWEST)).softmax(-1)),
        attending(lambda s, m: (s + torch.zeros(m.shape).masked_fill(m, LOWEST)).softmax(-1)),
    ),
    Case("mask_on_one_head", "causal", plain(lambda x: heads(x, only(x, 1))), plain(lambda x: heads(x, past(x)))),
    Case("mask_on_one_row", "causal", plain(lambda x: heads(x, only(x, 0))), plain(lambda x: heads(x, past(x)))),
    Case(
        "summary_of_all_tokens_among_the_keys",
        "causal",
        plain(lambda x: summary(x, x.mean(1, keepdim=True))),
        lambda x, zero, one, *_: summary(x, one[:1]),
    ),
    Case(
        "renormalised_after_the_softmax",
        "causal",
        attending(lambda s, m: s.softmax(-1) * ~m / (s.softmax(-1) * ~m).sum(-1, keepdim=True)),
        CAUSAL,
        verdict="undecided",
    ),
    Case(
        "largest_score_subtracted",
        "causal",
        attending(lambda s, m: (s - s.amax((1, 2), keepdim=True)).masked_fill(m, -torch.inf).softmax(-1)),
        attending(
            lambda s, m: (s - s.masked_fill(m, 0.0).amax(-1, keepdim=True)).masked_fill(m, -torch.inf).softmax(-1)
        ),
        verdict="undecided",
    ),
    Case(
        "total_less_the_future",
        "causal",
        plain(lambda x: x.sum(1, keepdim=True) - x.flip(1).cumsum(1).flip(1) + x),
        plain(lambda x: x.cumsum(1)),
        verdict="undecided",
    ),
    Case("best_scores_of_all_keys", "causal", plain(lambda x: only_the_best(x, scores(x))), CAUSAL),
    Case(
        "scale_of_the_whole_tensor",
        "causal",
        plain(lambda x: quantised(x, x.abs().amax())),
        plain(lambda x: quantised(x, x.abs().amax(-1, keepdim=True)) + causal(x)),
    ),
    Case("experts_choose_tokens", "causal", plain(expert_choice), plain(lambda x: token_choice(causal(x)))),
    Case("groups_of_tokens_chosen", "causal", plain(lambda x: favoured(x, 1)), plain(lambda x: favoured(x, 2))),
    Case(
        "decay_into_the_future",
        "causal",
        plain(lambda x: decayed(x, decay(x))),
        plain(lambda x: decayed(x, decay(x).tril())),
    ),
    Case(
        "infinity_written_where_data_say",
        "causal",
        plain(lambda x: best_written(x, scores(x), -torch.inf)),
        plain(lambda x: best_written(x, scores(x).tril(), 1.0)),
    ),
    Case(
        "scores_clamped_to_the_mask",
        "causal",
        attending(lambda s, m: s.clamp(max=-1e9).masked_fill(m, -1e9).softmax(-1)),
        attending(lambda s, m: s.clamp(min=-1e9, max=torch.inf).masked_fill(m, -1e30).softmax(-1)),
    ),
    Case(
        "complex_number_made_of_two_tokens",
        "causal",
        plain(lambda x: paired(x, x.flip(1))),
        plain(lambda x: paired(x, x.flip(2))),
    ),
    Case(
        "token_written_at_a_place_that_data_say",
        "causal",
        plain(lambda x: put(x, 1, x[0, -1, :1])),
        plain(lambda x: put(x, 2, x[0, 0, :1])),
    ),
    Case(
        "zero_sums_of_all_tokens",
        "causal",
        plain(lambda x: x * (scores(x).tril(-1)).sum(-2, keepdim=True).transpose(1, 2)),
        plain(lambda x: x * (scores(x).tril(-1)).sum(-1, keepdim=True)),
    ),
    Case(
        "mean_of_all_tokens",
        "causal",
        plain(lambda x: x + x.mean(1, keepdim=True)),
        plain(lambda x: x.cumsum(1) / counted(x)),
    ),
    Case(
        "norm_with_statistics_of_the_sequence",
        "causal",
        plain(lambda x: normed(x, (1, 2))),
        plain(lambda x: normed(causal(x), (2,))),
    ),
    Case(
        "instance_norm",
        "causal",
        plain(lambda x: F.instance_norm(x.transpose(1, 2)).transpose(1, 2)),
        plain(lambda x: F.layer_norm(causal(x), (WIDTH,))),
    ),
    Case(
        "group_norm_over_tokens",
        "causal",
        plain(lambda x: F.group_norm(x.transpose(1, 2), 2).transpose(1, 2)),
        plain(lambda x: F.group_norm(causal(x).flatten(0, 1), 2).view(x.shape)),
    ),
    Case(
        "batch_norm_in_training",
        "causal",
        plain(lambda x: F.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2)),
        lambda x, zero, one, *_: F.batch_norm(causal(x).transpose(1, 2), one[0], one[1].square()).transpose(1, 2),
    ),
    Case("fourier_transform", "causal", plain(lambda x: torch.fft.fft(x, dim=1).real), CAUSAL),
    Case(
        "centred_convolution",
        "causal",
        lambda x, zero, one, square, kernel, *_: conv(x, kernel, (1, 1)),
        lambda x, zero, one, square, kernel, *_: conv(x, kernel, (2, 0)),
    ),
    Case("roll", "causal", plain(lambda x: x + x.roll(1, 1)), plain(shifted)),
    Case(
        "running_sum_from_the_end", "causal", plain(lambda x: x.flip(1).cumsum(1).flip(1)), plain(lambda x: x.cumsum(1))
    ),
    Case(
        "pooling_over_windows",
        "causal",
        plain(lambda x: F.avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)),
        CAUSAL,
    ),
    Case(
        "largest_of_windows",
        "causal",
        plain(lambda x: F.max_pool2d(x[:, None], (3, 1), 1, (1, 0))[:, 0]),
        plain(lambda x: F.max_pool2d(F.pad(x, (0, 0, 2, 0), value=-9.0)[:, None], (3, 1), 1)[:, 0]),
    ),
    Case("sorted_tokens", "causal", plain(lambda x: x.sort(1).values), plain(lambda x: causal(x).sort(-1).values)),
    Case("last_token_added", "causal", plain(lambda x: x + x[:, -1:]), plain(lambda x: x + x[:, :1])),
    Case(
        "number_taken_from_the_data",
        "causal",
        plain(lambda x: x * float(x[0, -1, 0].item())),
        plain(lambda x: x * x[:, :1, :1]),
    ),
    Case(
        "zeros_times_uninitialised_memory",
        "causal",
        plain(lambda x: x + torch.empty_like(x) * torch.zeros_like(x)),
        plain(lambda x: x + torch.empty_like(x).copy_(x) * torch.zeros_like(x)),
        verdict="undecided",
    ),
    Case(
        "uninitialised_memory",
        "causal",
        plain(lambda x: x + 0 * torch.empty_like(x)),
        plain(lambda x: x + torch.zeros_like(x).cumsum(1)),
        verdict="undecided",
    ),
]


def named(case: Case) -> str:
    return f"{case.name}-{case.law}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_model_that_breaks_the_law_is_not_proved(case: Case) -> None:
    finding = case.finding(case.broken, case.law)
    assert "error in the prover" not in finding.reason
    assert finding.verdict == case.verdict, finding.reason
    assert finding.proof is None
    assert finding.reason
    if case.verdict == "refuted":
        assert finding.witness is not None
        assert finding.witness.difference > 1e-5
        assert finding.witness.weights == case.weights
    else:
        assert finding.witness is None


@pytest.mark.parametrize("case", [case for case in CASES if case.twin is not None], ids=named)
def test_its_twin_without_the_fault_is_proved(case: Case) -> None:
    assert case.twin is not None
    finding = case.finding(case.twin, case.twin_law or case.law)
    assert finding.verdict == "proved", finding.reason
    assert finding.proof is not None
    assert finding.proof.steps == len(finding.proof.lines) > 0
    assert finding.deviation.float64 is not None
    assert finding.deviation.float64 < 1e-12


@pytest.mark.parametrize("law", ["order_blind", "causal"])
def test_chance_is_never_proved(law: str) -> None:
    for function in (
        lambda x: F.dropout(x, 0.5, training=True),
        lambda x: x + torch.rand(x.shape[1], 1),
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, is_causal=True),
    ):
        (finding,) = prove_law(examine(Program(function)), laws.get(law))
        assert finding.verdict in ("refuted", "undecided")
        assert "error in the prover" not in finding.reason


def test_random_operator_that_draws_nothing_is_proved() -> None:
    (finding,) = prove_law(
        examine(Program(lambda x: F.dropout(attend(x), 0.5, training=False))), laws.get("order_blind")
    )
    assert finding.verdict == "proved"
