"""The output of queries past the length of a row."""

import torch

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.attention.mask_reading import row_answer
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    query, key = torch.zeros(1, WIDTH), torch.zeros(4, WIDTH)
    query[0, 0], key[0, 0] = 4.0, 1.0  # the first key has a larger weight: pads that are not hidden show it
    plain = function.weights(4, 4, query=query, key=key)[0, 0]
    weights = function.weights(4, 4, query=query, key=key, query_lengths=torch.tensor([2]))[0, 0]
    if not same(weights[:2], plain[:2]):
        return OTHER
    return "what others give" if same(weights, plain) else row_answer(weights[2:])


QUESTION = Question(
    "query_lengths", "attention", "What do queries of pads give under a length of 2 of 4 queries?",
    "Pads that attend as others do carry numbers on; a mean of all values at pads looks as if it meant something.",
    _ask, frozenset({"query_lengths", "scores"}),
)  # fmt: skip
