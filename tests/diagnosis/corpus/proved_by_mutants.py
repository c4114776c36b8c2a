"""Programs that only mutants prove: each breaks its law where a mutant loses a fact."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.diagnosis.corpus.hidden_leaks import hidden_by_data, hidden_weights, unless_number
from tests.diagnosis.corpus.parts import FUTURE, attending, big, scores
from tests.diagnosis.corpus.top_k import BROKEN as LARGEST_BROKEN
from tests.diagnosis.corpus.top_k import OPEN as LARGEST_OPEN
from tests.diagnosis.walking import TOKENS, WIDTH

PROGRAMS = {  # name -> law, function
    "largest_too_few": ("causal", LARGEST_OPEN["fewer_than_are_visible"]),
    "smallest_places": ("causal", LARGEST_BROKEN["the_smallest"]),
    "low_less_low": (
        "causal",
        lambda x: unless_number(hidden_weights((hidden_by_data(x) - hidden_by_data(x)).exp(), x), x),
    ),
    "low_and_unsure": (
        "causal",
        lambda x: unless_number(hidden_weights((hidden_by_data(x) + x[..., :1] * 1e300 * 1e300).exp(), x), x),
    ),
    "mask_hidden_by_data": (
        "causal",
        lambda x: F.scaled_dot_product_attention(
            x, x, x, attn_mask=torch.where(FUTURE, torch.tensor(-1e9), hidden_by_data(x))
        ),
    ),
    "infinity_in_a_safe_line": (
        "causal",
        lambda x: unless_number(
            torch.ops.aten._safe_softmax(
                torch.cat([x[..., :1] * 1e300 * 1e300, x.new_full((2, TOKENS, TOKENS), -torch.inf)], -1), -1
            )[..., 1:],
            x,
        ),
    ),
    "mask_twice_over": (
        "causal",
        lambda x: unless_number(
            hidden_weights(
                (scores(x) + torch.full((TOKENS, TOKENS), -3e38) + torch.full((TOKENS, TOKENS), -3e38)).softmax(-1), x
            ),
            x,
        ),
    ),
    "one_value_that_is_not_zero": (
        "causal",
        lambda x: F.scaled_dot_product_attention(
            torch.ones_like(x), x, x * (torch.arange(TOKENS) == 0).to(x.dtype)[:, None]
        ),
    ),
    "mask_of_data_on_known_scores": (  # the first token is seen or not as a later one decides
        "causal",
        lambda x: F.scaled_dot_product_attention(
            x * torch.zeros(TOKENS, WIDTH),
            x,
            x * (torch.arange(TOKENS) == 0).to(x.dtype)[:, None],
            attn_mask=(x[..., 0] > 0)[:, None, :].expand(-1, TOKENS, -1),
        ),
    ),
    "infinity_less_infinity": (
        "causal",
        lambda x: torch.isnan(torch.where(x.flip(1) > 0, torch.inf, 0.0) + torch.full_like(x, -torch.inf)).to(x.dtype),
    ),
    "zeros_times_memory_as_it_is": ("causal", lambda x: x + torch.empty_like(x) * torch.zeros_like(x)),
    "random": ("permutation", lambda x: x + torch.rand(TOKENS, WIDTH)),
    "dropout": ("causal", lambda x: x + F.dropout(torch.ones(TOKENS, WIDTH), 0.5, training=True)),
    "mask_beside_entries_nearly_as_large": (
        "causal",
        attending(lambda s: (s + big(-1e8)).masked_fill(~FUTURE, -99999992.0).softmax(-1)),
    ),
}
