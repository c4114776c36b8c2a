"""A mask with an axis of one head and one query."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import hiding_mask
from orderproof.conventions.attention.questions.mask_of_three_axes import COUNT
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    each = torch.eye(COUNT)
    mask = hiding_mask(function, each.bool())[:, None, None]
    weights = function.weights(COUNT, COUNT, rows=COUNT, heads=COUNT, mask=mask)
    if same(weights, each[:, None, None].expand_as(weights)):
        return "the keys of each row"
    return "read as [query, key]" if same(weights, each.expand_as(weights)) else OTHER


QUESTION = Question(
    "mask_of_four_axes", "attention", "What does a mask [row, 1, 1, key] hide, with several heads?",
    "The usual form of a padding mask is an error in one library, and must be made whole before it is given.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
