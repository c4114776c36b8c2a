"""The alignment of a causal flag with more queries than keys."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import row_answer
from orderproof.conventions.attention.questions.causal_fewer_queries import uniform
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    weights = function.weights(5, 2, causal=True)[0, 0]
    ones = torch.ones(5, 2)
    if same(weights, uniform(ones.tril())):
        return "aligned to the first key"
    if same(weights[3:], uniform(ones.tril(-3)[3:])):
        return f"aligned to the last key; queries before it give {row_answer(weights[:3])}"
    return "ignored" if same(weights, uniform(ones)) else OTHER


QUESTION = Question(
    "causal_more_queries", "attention", "Which keys does a causal flag show with 5 queries and 2 keys?",
    "Aligned to the last key, the first queries see nothing at all.",
    _ask, frozenset({"causal"}),
)  # fmt: skip
