"""The axes of a mask with two axes."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import KEYS, hiding_mask
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    each = torch.eye(KEYS)
    found = OTHER
    for mask in (hiding_mask(function, each.bool()), each.bool()):  # one of two axes may be of another kind
        weights = function.weights(KEYS, KEYS, rows=KEYS, mask=mask)[:, 0]
        if same(weights, each.expand_as(weights)):
            return "[query, key]"
        found = "[row, key]" if same(weights, each.unsqueeze(1).expand_as(weights)) else found
    return found


QUESTION = Question(
    "mask_of_two_axes", "attention", "Which axes has a mask with two axes, if there are as many rows as queries?",
    "A padding mask [row, key] that is read as [query, key] hides keys from queries instead of pads from all.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
