"""An explicit mask given together with a causal flag."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import KEYS, hiding_mask
from orderproof.conventions.attention.questions.causal_fewer_queries import uniform
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    visible = torch.ones(KEYS, KEYS, dtype=torch.bool)
    visible[:, 1] = False
    weights = function.masked_weights(hiding_mask(function, visible), causal=True)
    causal = torch.ones(KEYS, KEYS).tril()
    cases = {"both hold": causal * visible, "only the mask holds": visible.float(), "only the flag holds": causal}
    return next((name for name, seen in cases.items() if same(weights, uniform(seen))), OTHER)


QUESTION = Question(
    "mask_and_causal", "attention", "Which holds if a mask is given together with a causal flag?",
    "Where only one holds, padding leaks or later tokens do, in silence.",
    _ask, frozenset({"mask", "causal"}),
)  # fmt: skip
