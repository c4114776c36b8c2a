"""Masked weights of attention that are mixed, decayed and normalized; each proof has a faulty twin."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.auditing.law_pairs import findings_of, verdicts

HEADS = 4


def hidden(tokens: int) -> Tensor:
    """True where a token is in the future."""
    return torch.ones(tokens, tokens, dtype=torch.bool).triu(1)


class Attention(nn.Module):
    """Attention whose weights a function makes from the queries and keys of each head."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights
        self.inner = nn.Linear(16, 48)

    def forward(self, x):
        query, key, value = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.inner(x).chunk(3, -1))
        return (self.weights(query, key) @ value).transpose(1, 2).flatten(2)


class Talking(nn.Module):
    """A convolution over heads after the softmax."""

    def __init__(self, kernel=1, bias=False):
        super().__init__()
        self.mix = nn.Conv2d(HEADS, HEADS, kernel, padding=kernel // 2, bias=bias)

    def forward(self, query, key):
        scores = (query @ key.mT).masked_fill(hidden(query.shape[-2]), -torch.finfo(query.dtype).max)
        return self.mix(scores.softmax(-1))


def test_talking_heads_mix_the_zeros_of_masked_weights():
    assert verdicts(Attention(Talking()), ["causal", "batch"]) == {"causal": "proved", "batch": "proved"}


@pytest.mark.parametrize("fault", [{"bias": True}, {"kernel": 3}])
def test_a_bias_or_a_window_over_weights_reads_the_future(fault):
    assert verdicts(Attention(Talking(**fault)), ["causal"]) == {"causal": "refuted"}


def decay(tokens: int, *, future: bool) -> Tensor:
    """Powers of the distance; of the future zero, unless `future`."""
    distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
    powers = 0.9 ** distance.abs().float()
    return powers if future else torch.where(distance >= 0, powers, 0.0)


@pytest.mark.parametrize("equation", ["bhid,bhjd,ij->bhij", "ij,bhid,bhjd->bhij"])
@pytest.mark.parametrize("future", [False, True])
def test_products_of_three_operands_use_the_zeros_of_a_decay(equation, future):
    def weights(query: Tensor, key: Tensor) -> Tensor:
        factors = [query, key]
        factors.insert(equation.split(",").index("ij") if "ij," in equation else 2, decay(key.shape[-2], future=future))
        return torch.einsum(equation, *factors)

    assert verdicts(Attention(weights), ["causal"]) == {"causal": "refuted" if future else "proved"}


def test_a_zero_times_an_infinite_weight_proves_nothing():
    """Decay of zero hides no score that is infinite: 0 inf is no number."""

    def weights(query: Tensor, key: Tensor) -> Tensor:
        infinite = (query @ key.mT).masked_fill(hidden(key.shape[-2]).mT, -torch.inf)
        return torch.einsum("bhij,ij->bhij", infinite, decay(key.shape[-2], future=False))

    assert verdicts(Attention(weights), ["causal"])["causal"] != "proved"


class Normalized(nn.Module):
    """A norm over the channels of tokens."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return self.norm(x.mT).mT


def test_batch_norm_without_stored_statistics_mixes_rows_and_keeps_order():
    norm = Normalized(nn.BatchNorm1d(16, track_running_stats=False))
    assert verdicts(norm, ["causal", "permutation", "batch"]) == {
        "causal": "refuted",
        "permutation": "proved",
        "batch": "refuted",
    }


def test_instance_norm_keeps_rows_apart():
    norm = Normalized(nn.InstanceNorm1d(16, affine=True))
    assert verdicts(norm, ["causal", "permutation", "batch"]) == {
        "causal": "refuted",
        "permutation": "proved",
        "batch": "proved",
    }


class Weights(nn.Module):
    """nn.MultiheadAttention with its weights, masked from a diagonal on."""

    def __init__(self, diagonal, average):
        super().__init__()
        self.diagonal, self.average = diagonal, average
        self.inner = nn.MultiheadAttention(16, HEADS, batch_first=True)

    def forward(self, x):
        tokens = x.shape[1]
        mask = torch.full((tokens, tokens), -torch.inf).triu(self.diagonal)
        return self.inner(x, x, x, attn_mask=mask, average_attn_weights=self.average)


@pytest.mark.parametrize(("diagonal", "verdict"), [(1, "proved"), (2, "refuted")])
@pytest.mark.parametrize("average", [True, False])
def test_both_outputs_of_attention_with_weights(diagonal, verdict, average):
    torch.manual_seed(0)
    findings = findings_of(Weights(diagonal, average), "causal")
    assert [f.verdict for f in findings] == [verdict] * 2


def test_a_scaled_mask_proves_nothing():
    """Beta multiplies the mask that is added to a product."""

    def weights(query: Tensor, key: Tensor) -> Tensor:
        tokens = key.shape[-2]
        mask = torch.full((tokens, tokens), -1e9).triu(1)
        query, key = query.flatten(0, 1), key.flatten(0, 1)
        scores = torch.baddbmm(mask, query, key.mT, beta=1e-9)
        return scores.softmax(-1).unflatten(0, (-1, HEADS))

    assert verdicts(Attention(weights), ["causal"]) == {"causal": "refuted"}


class Stabilized(nn.Module):
    """Exponential gates of an mLSTM, divided by their sum; `early` sums before the future is hidden."""

    def __init__(self, *, early: bool = False) -> None:
        super().__init__()
        self.early = early

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        scores = query @ key.mT
        gates = scores.masked_fill(hidden(query.shape[-2]), -torch.inf)
        weights = scores * (gates - gates.amax(-1, keepdim=True)).exp()
        total = (scores if self.early else weights).sum(-1, keepdim=True).abs()
        return weights / torch.maximum(total, torch.ones(1))


def test_a_zero_weight_stays_zero_when_it_is_divided():
    (finding,) = findings_of(Attention(Stabilized()), "causal")
    assert finding.verdict == "proved"
    assert verdicts(Attention(Stabilized(early=True)), ["causal"]) == {"causal": "refuted"}


def test_zero_divided_by_zero_is_no_zero():
    def weights(query, key):
        shown = (~hidden(query.shape[-2])).float()
        return (query @ key.mT * shown) / shown

    assert verdicts(Attention(weights), ["causal"])["causal"] != "proved"
