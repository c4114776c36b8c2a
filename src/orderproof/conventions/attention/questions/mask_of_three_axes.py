"""The axes of a mask with three axes."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import hiding_mask
from orderproof.conventions.question import OTHER, Question, same

COUNT = 4  # of rows, heads, queries and keys; torch's fast path needs an even number of heads


def _ask(function: AttentionFunction) -> str:
    each = torch.eye(COUNT)
    visible = each.bool()[:, None].expand(COUNT, COUNT, COUNT)  # entry i shows key i to every query
    mask = torch.stack([hiding_mask(function, part) for part in visible])
    weights = function.weights(COUNT, COUNT, rows=COUNT, heads=COUNT, mask=mask)
    if same(weights, each[None, :, None].expand_as(weights)):
        return "[head, query, key]"
    return "[row, query, key]" if same(weights, each[:, None, None].expand_as(weights)) else OTHER


QUESTION = Question(
    "mask_of_three_axes", "attention", "Which axes has a mask with three axes, if there are as many rows as heads?",
    "A mask for each row that is read as one for each head mixes the rows of a batch.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
