"""Programs at which the prover once recorded a false fact about some node."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.case import Case
from tests.diagnosis.corpus.parts import FUTURE, attending, big, same, scores
from tests.diagnosis.walking import TOKENS, WIDTH


def causal_weights(scores: Tensor) -> Tensor:
    """Causal attention weights."""
    return scores.masked_fill(FUTURE, -torch.inf).softmax(-1)


WRONG_FACTS = [
    Case(
        "log_softmax_of_a_finite_mask",
        "causal",
        attending(lambda s: (s + big()).log_softmax(-1) + big(1e9)),
    ),
    Case("causal_attention", "permutation", attending(causal_weights)),
    Case("causal_maximum", "permutation", lambda x: (-scores(x)).masked_fill(FUTURE, -torch.inf).amax(-1)),
    Case("causal_attention", "prompt_permutation", attending(causal_weights)),
    Case(
        "causal_attention_of_equal_keys",
        "prompt_permutation",
        lambda x: F.scaled_dot_product_attention(x[:, None], same(x)[:, None], x[:, None], attn_mask=~FUTURE),
    ),
    Case(
        "attention_of_equal_queries",
        "permutation",
        lambda x: F.scaled_dot_product_attention(same(x)[:, None], x[:, None], x[:, None], attn_mask=~FUTURE),
    ),
    Case(
        "maximum_whose_index_is_not_read",
        "permutation",
        lambda x: x.max(1).values,
    ),
    Case(
        "median_whose_index_is_not_read",
        "permutation",
        lambda x: x.median(1).values,
    ),
    Case(
        "known_zeros_of_an_operand_retargeted",
        "permutation",
        lambda x: torch.einsum("ij,bij->bi", x.sum((0, 1))[0].expand(TOKENS, TOKENS).tril(-1), scores(x)),
    ),  # contraction: zeros are taken under the operand's own move, not under the one it is said to move by
    Case(
        "eight_bits_added_to_a_number",
        "causal",
        lambda x: (x > 0).to(torch.uint8).masked_fill(torch.ones(TOKENS, WIDTH).bool(), 200) + torch.tensor(100),
    ),  # _evaluate gives a number (0-d tensor) the operands' rank, which changes the dtype: 300 for 44
    Case(
        "two_filled_into_booleans",
        "causal",
        lambda x: (x > 0).masked_fill(torch.ones(TOKENS, WIDTH).bool(), 2),
    ),  # a literal filled into booleans is known as 2, not as True
]
