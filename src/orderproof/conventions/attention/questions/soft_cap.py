"""The order of a soft cap of scores and a mask."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import KEYS, hiding_mask
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    visible = torch.ones(KEYS, KEYS, dtype=torch.bool)
    visible[:, 0] = False
    weights = function.masked_weights(hiding_mask(function, visible), soft_cap=1.0)[0]
    if same(weights, visible[0] / 2):
        return "before the mask"
    capped = torch.tensor([-1.0, 0.0, 0.0]).softmax(0)
    return "after the mask, which it undoes" if same(weights, capped) else OTHER


QUESTION = Question(
    "soft_cap", "attention", "Are scores capped before or after the mask?",
    "A cap after the mask lets hidden keys through with a small weight.",
    _ask, frozenset({"mask", "soft_cap"}),
)  # fmt: skip
