"""Programs that leak only where an entry that looks ordinary is masked, infinite or not a number."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.case import Case
from tests.diagnosis.corpus.false_proofs import FIRST, TURN, not_a_number
from tests.diagnosis.corpus.parts import FUTURE, big, hidden_attention, rare, scores
from tests.diagnosis.walking import TOKENS, WIDTH

# The runs that accompany a proof draw ordinary numbers, so that only other numbers show these leaks.
UNSEEN = [
    Case("convolution_without_a_batch", "causal", lambda x: x[0] + F.conv1d(rare(x[0]), TURN)),
    Case(
        "zero_times_minus_infinity",
        "causal",
        lambda x: x + torch.where(not_a_number(x), rare(x).sum(-1)[:, None], 0.0).sum(-1, keepdim=True),
    ),
    Case("mask_subtracted", "causal", lambda x: x + (scores(x) - FIRST + big()).softmax(-1) @ rare(x)),
]


def unless_number(a: Tensor, x: Tensor) -> Tensor:
    """Something of the future where a is not a number."""
    return x + torch.where(a.isnan(), rare(x).sum(-1)[:, None], 0.0).sum(-1, keepdim=True)


def hidden_weights(a: Tensor, x: Tensor, count: int = 1) -> Tensor:
    """Softmax weights of tokens that are all hidden, next to the first entries of a."""
    made: Tensor = torch.cat([a[..., :count], scores(x) + torch.full((TOKENS, TOKENS), -1e9)], -1).softmax(-1)
    return made[..., count:]


def hide(x: Tensor) -> Tensor:
    """Scores of the future are -inf."""
    return scores(x).masked_fill(FUTURE, -torch.inf)


LOW = torch.full((WIDTH,), -1e9)
PLACE = torch.arange(1.0 * TOKENS)[:, None]


def hidden_by_data(x: Tensor) -> Tensor:
    """One number a token, -inf where the token itself says so (it always does here)."""
    return x[..., :1].masked_fill(x[..., :1] > 0, -torch.inf)


def barely_hidden_attention(a: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """The same as `hidden_attention`, with a mask that is only just one."""
    shallow = scores(x) + torch.full((TOKENS, TOKENS), -1e8)
    made: Tensor = x + torch.cat([a, shallow], -1).softmax(-1)[..., 1:] @ v
    return made


PASSED_FOR_ORDINARY = {
    "logarithm_of_a_softmax_of_what_data_hide": Case(
        "",
        "causal",
        lambda x: hidden_attention(torch.cat([hidden_by_data(x), x[..., :1]], -1).log_softmax(-1)[..., :1], rare(x), x),
    ),
    "softmax_of_a_row_that_data_and_a_mask_hide": Case(
        "",
        "causal",
        lambda x: unless_number(
            hidden_weights((hidden_by_data(x) + torch.full((TOKENS, TOKENS), -1e9)).softmax(-1), x), x
        ),
    ),
    "softplus_of_negative_slope": Case(
        "", "causal", lambda x: hidden_attention(F.softplus(hidden_by_data(x), -1.0), rare(x), x)
    ),
    "elu_of_negative_slope": Case(
        "",
        "causal",
        lambda x: unless_number(hidden_weights(torch.ops.aten.elu(hidden_by_data(x), 1.0, 1.0, -1.0), x), x),
    ),
    "bits_read_as_whole_numbers_and_back": Case(
        "",
        "causal",
        lambda x: hidden_attention(
            hidden_by_data(x).float().view(torch.int32).view(torch.float32).to(x.dtype), rare(x), x
        ),
    ),
    "bits_of_whole_numbers_read_as_infinity": Case(
        "",
        "causal",
        lambda x: unless_number(
            hidden_weights(((x[..., :1] > 0).to(torch.int32) * 0x7F800000).view(torch.float32).to(x.dtype), x), x
        ),
    ),
    "division_by_next_to_nothing": Case(
        "", "causal", lambda x: unless_number(hidden_weights(x[..., :1] / 1e-300 / 1e-300, x), x)
    ),
    "division_by_a_constant_next_to_nothing": Case(
        "",
        "causal",
        lambda x: unless_number(hidden_weights(x[..., :1] / torch.full((1,), 1e-30) / torch.full((1,), 1e-300), x), x),
    ),
    "mask_of_whole_numbers_by_multiplication": Case(
        "", "causal", lambda x: hidden_attention(((x[..., :1] > 0).long() * -1000000000).to(x.dtype), rare(x), x)
    ),
    "mask_of_whole_numbers_by_addition": Case(
        "", "causal", lambda x: hidden_attention(((x[..., :1] > 0).long() - 1000000001).to(x.dtype), rare(x), x)
    ),
    "mask_of_whole_numbers_subtracted_from": Case(
        "", "causal", lambda x: hidden_attention((-1000000000 - (x[..., :1] > 1e9).long()).to(x.dtype), rare(x), x)
    ),
    "mask_of_whole_numbers_selected": Case(
        "", "causal", lambda x: hidden_attention(torch.where(x[..., :1] > 0, -1000000000, 0).to(x.dtype), rare(x), x)
    ),
    "whole_number_filled_in_where_data_say": Case(
        "",
        "causal",
        lambda x: barely_hidden_attention(x[..., :1].masked_fill(x[..., :1] > 0, torch.tensor(-99999999)), rare(x), x),
    ),
    "almost_a_mask_filled_in_where_data_say": Case(
        "", "causal", lambda x: barely_hidden_attention(x[..., :1].masked_fill(x[..., :1] > 0, -99999992.0), rare(x), x)
    ),
    "almost_a_mask_selected_where_data_say": Case(
        "",
        "causal",
        lambda x: barely_hidden_attention(torch.where(x[..., :1] > 0, torch.full((1,), -99999992.0), 0.0), rare(x), x),
    ),
    "layer_norm_with_a_mask_as_bias": Case(
        "", "causal", lambda x: hidden_attention(F.layer_norm(x, (WIDTH,), None, LOW)[..., :1], rare(x), x)
    ),
    "rms_norm_with_a_mask_as_weight": Case(
        "", "causal", lambda x: hidden_attention(F.rms_norm(x.abs(), (WIDTH,), LOW.to(x))[..., :1], rare(x), x)
    ),
    "group_norm_with_a_mask_as_bias": Case(
        "",
        "causal",
        lambda x: hidden_attention(F.group_norm(x.view(-1, WIDTH, 1), 1, None, LOW).view_as(x)[..., :1], rare(x), x),
    ),
    "masked_entries_of_which_nothing_follows": Case(
        "", "permutation", lambda x: hidden_attention((x + LOW)[:, :1, :1].expand(-1, TOKENS, 1), rare(x) * PLACE, x)
    ),
    "masked_entries_of_which_nothing_follows_by_type_as": Case(
        "", "causal", lambda x: hidden_attention(torch.full((2, TOKENS, 1), -1e9).type_as(x), rare(x), x)
    ),
    "infinity_beside_minus_infinity_in_softmax": Case(
        "",
        "causal",
        lambda x: unless_number(hide(x).masked_fill(torch.eye(TOKENS).bool(), torch.inf).softmax(-1), x),
    ),
    "minus_infinity_plus_what_is_no_number": Case(
        "", "causal", lambda x: unless_number(hide(x) + torch.full((TOKENS, TOKENS), torch.nan), x)
    ),
    "softmax_of_a_row_of_minus_infinity_passes_for_ordinary": Case(
        "",
        "causal",
        lambda x: unless_number(
            torch.cat(
                [
                    scores(x).masked_fill(torch.ones(TOKENS, TOKENS).bool(), -torch.inf).softmax(-1)[..., :1],
                    scores(x) + torch.full((TOKENS, TOKENS), -1e9),
                ],
                -1,
            ).softmax(-1)[..., 1:],
            x,
        ),
    ),
    "plus_infinity_filled_where_the_input_says": Case(
        "", "causal", lambda x: unless_number(hidden_weights(scores(x).masked_fill(scores(x) > 0, torch.inf), x), x)
    ),
    "unsure_entry_that_overflows_beside_masked_ones": Case(
        "",
        "causal",
        lambda x: unless_number(hidden_weights(torch.cat([x[..., :1], (x * 1e300 * 1e300)[..., :1]], -1), x, 2), x),
    ),
    "layer_norm_with_a_weight_filled_with_nan": Case(
        "",
        "causal",
        lambda x: unless_number(
            hidden_weights(F.layer_norm(x, (WIDTH,), x[0, 0].masked_fill(LOW < 0, torch.nan)), x), x
        ),
    ),
}

ORDINARY: dict[str, Callable[[Tensor], Tensor]] = {
    "input": lambda x: x[..., :1],
    "logarithm_of_a_softmax": lambda x: x.log_softmax(-1)[..., :1],
    "softmax_of_what_data_hide_in_part": lambda x: torch.cat([hidden_by_data(x), x[..., :1]], -1).softmax(-1)[..., :1],
    "exponential_of_what_data_hide": lambda x: hidden_by_data(x).exp(),
    "softplus_of_what_data_hide": lambda x: F.softplus(hidden_by_data(x)),
    "softplus_of_positive_slope": lambda x: F.softplus(hidden_by_data(x), 2.0),
    "elu_of_what_data_hide": lambda x: F.elu(hidden_by_data(x)),
    "division_by_a_number": lambda x: x[..., :1] / 0.01,
    "whole_numbers": lambda x: ((x[..., :1] > 0).long() * 1000 - 7).to(x.dtype),
    "row_of_a_table_by_a_large_whole_number": lambda x: F.embedding(
        ((x[..., 0] > 0).long() + 100000) % 3, torch.eye(3)
    ).to(x.dtype)[..., :1],
    "small_number_filled_in_where_data_say": lambda x: x[..., :1].masked_fill(x[..., :1] > 0, -1e4),
    "attention_under_a_mask_of_data": lambda x: F.scaled_dot_product_attention(
        x, x, x, attn_mask=(x[..., :1] > 0) & ~FUTURE
    )[..., :1],
}
