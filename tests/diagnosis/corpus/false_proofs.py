"""Programs that break a law which the prover once proved of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.case import Case
from tests.diagnosis.corpus.parts import FUTURE, attending, big, hidden_attention, same, scores
from tests.diagnosis.walking import TOKENS, WIDTH


def level(x: Tensor) -> Tensor:
    """One number a row, repeated to [batch, token, token]."""
    return x.mean((1, 2)).view(-1, 1, 1).expand(x.shape[0], TOKENS, TOKENS)


TURN = torch.linspace(-1, 1, TOKENS * TOKENS).view(TOKENS, TOKENS, 1)
FALLEN = torch.full((TOKENS, TOKENS), -1e9)
FIRST = torch.zeros(TOKENS, TOKENS).index_fill(1, torch.tensor(0), 1e9)  # hides the first token as a finite mask does
VALUES = torch.arange(2.0 * TOKENS).view(TOKENS, 2)


def joined(x: Tensor) -> Tensor:
    """Scores behind a constant of a thousand masked entries."""
    return torch.cat([x.new_full((2, TOKENS, 1000), -1e9), scores(x)], -1)


def early(x: Tensor) -> Tensor:
    """Numbers [batch, token, token] made of the first token alone, hidden where a token sees the past."""
    made: Tensor = scores(x[:, :1]).expand(-1, TOKENS, TOKENS) + torch.zeros(TOKENS, TOKENS).masked_fill(~FUTURE, -1e9)
    return made


def late(a: Tensor, x: Tensor) -> Tensor:
    """Attention whose scores of the past are made of the first token, with the future hidden."""
    made: Tensor = (a + scores(x) * FUTURE + big()).softmax(-1) @ VALUES
    return made


def flat_attention(v: Tensor) -> Tensor:
    """Attention of each row of v to itself alone."""
    zero = v.new_zeros(v.shape[0], 1, TOKENS, 4)
    return F.scaled_dot_product_attention(zero, zero, v[:, None], attn_mask=torch.eye(TOKENS).bool())[:, 0]


def not_a_number(x: Tensor) -> Tensor:
    """Where a score of -inf was multiplied by zero."""
    return (scores(x).masked_fill(FUTURE, -torch.inf) * (~FUTURE)).isnan()


FALSE_PROOFS = [
    Case(
        "attention_of_equal_scores_under_a_causal_mask",
        "permutation",
        lambda x: F.scaled_dot_product_attention(same(x), same(x), x, is_causal=True),
    ),
    Case(
        "layer_norm_over_equal_elements_with_a_ramp_as_bias",
        "permutation",
        lambda x, w, b: F.layer_norm(level(x), (TOKENS,), w, b) @ x,
        buffers=("one", "ramp"),
    ),
    Case(
        "rms_norm_over_equal_elements_with_a_ramp_as_weight",
        "permutation",
        lambda x, w: F.rms_norm(level(x), (TOKENS,), w) @ x,
        buffers=("ramp",),
    ),
    Case(
        "group_norm_over_equal_channels_with_a_ramp_as_bias",
        "permutation",
        lambda x, w, b: F.group_norm(level(x), 1, w, b).transpose(1, 2) @ x,
        buffers=("one", "ramp"),
    ),
    Case(
        "convolution_whose_weight_is_made_of_tokens",
        "permutation",
        lambda x: F.conv1d(x.transpose(1, 2), x.mean(0)[:, :, None])[:, 0],
    ),
    Case(
        "convolution_whose_bias_is_made_of_tokens",
        "permutation",
        lambda x: F.conv1d(x.transpose(1, 2), x.new_ones(TOKENS, WIDTH, 1), x.mean((0, 2)))[:, 0],
    ),
    Case("mask_times_a_tiny_number", "causal", attending(lambda s: ((s + big()) * 1e-9).softmax(-1))),
    Case("mask_divided_by_a_large_number", "causal", attending(lambda s: ((s + big()) / 1e9).softmax(-1))),
    Case(
        "mask_divided_by_a_large_tensor",
        "causal",
        attending(lambda s: ((s + big()) / torch.full((1,), 1e9)).softmax(-1)),
    ),
    Case("mask_added_with_alpha_0", "causal", attending(lambda s: s.add(big(), alpha=0).softmax(-1))),
    Case("mask_added_with_alpha_minus_1", "causal", attending(lambda s: s.add(big(), alpha=-1).softmax(-1))),
    Case("mask_added_and_taken_back", "causal", attending(lambda s: (s + big() + big(1e9)).softmax(-1))),
    Case(
        "mask_made_boolean",
        "causal",
        attending(lambda s: (s + big()).to(torch.bool).to(s.dtype).softmax(-1)),
    ),
    Case(
        "mask_wrapped_round_in_int8",
        "causal",
        attending(lambda s: (s + big()).to(torch.int8).to(s.dtype).softmax(-1)),
    ),
    Case(
        "mask_beside_visible_entries_as_large",
        "causal",
        attending(lambda s: (s + big(-1e8)).masked_fill(~FUTURE, -99999999.0).softmax(-1)),
    ),
    Case("convolution_without_a_batch", "causal", lambda x: F.conv1d(x[0], TURN)),
    Case("convolution_without_a_batch", "permutation", lambda x: F.conv1d(x[0], TURN)),
    Case("zero_times_minus_infinity", "causal", lambda x: torch.where(not_a_number(x), scores(x), 0.0).sum(-1)),
    Case("mask_subtracted", "causal", lambda x: (scores(x) - FIRST + big()).softmax(-1) @ VALUES),
    Case("mask_by_minimum", "causal", lambda x: (scores(x).minimum(-FIRST) + big()).softmax(-1) @ VALUES),
    Case("mask_by_baddbmm", "causal", lambda x: (torch.baddbmm(-FIRST, x, x.mT) + big()).softmax(-1) @ VALUES),
    Case(
        "mask_by_slice_scatter",
        "causal",
        lambda x: (scores(x).slice_scatter(x.new_full((2, TOKENS, 1), -1e9), 2, 0, 1) + big()).softmax(-1) @ VALUES,
    ),
    Case(
        "mask_joined_from_a_large_constant",
        "causal",
        lambda x: (joined(x)[..., 999 : 999 + TOKENS] + big()).softmax(-1) @ VALUES,
    ),
    Case(
        "mask_by_amax",
        "causal",
        lambda x: (torch.stack([scores(x), FIRST.flip(1).expand(2, -1, -1)]).amax(0) + big()).softmax(-1) @ x,
    ),
    Case(
        "mask_by_maximum_and_its_place",
        "causal",
        lambda x: (torch.stack([scores(x), FIRST.flip(1).expand(2, -1, -1)]).max(0).values + big()).softmax(-1) @ x,
    ),
    Case(
        "mask_by_logsumexp",
        "causal",
        lambda x: (torch.stack([scores(x), FIRST.flip(1).expand(2, -1, -1)]).logsumexp(0) + big()).softmax(-1) @ x,
    ),
    Case(
        "mask_by_amax_of_low_entries",
        "causal",
        lambda x: hidden_attention(
            1000 * torch.stack([scores(x) + FALLEN, FALLEN.expand(2, -1, -1) / 1000]).amax(0)[..., :1], x, x
        ),
    ),
    Case("mask_through_log_softmax", "causal", lambda x: late(early(x).log_softmax(-1), x)),
    Case("mask_through_a_flat_roll", "causal", lambda x: late(early(x).roll(0), x)),
    Case("mask_through_attention_as_value", "causal", lambda x: late(flat_attention(early(x)), x)),
    Case(
        "mask_through_batch_norm",
        "causal",
        lambda x: late(F.batch_norm(early(x), torch.zeros(TOKENS), torch.ones(TOKENS), eps=0.0), x),
    ),
]
