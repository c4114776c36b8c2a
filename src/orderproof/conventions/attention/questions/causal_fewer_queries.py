"""The alignment of a causal flag with fewer queries than keys."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.question import OTHER, Question, same


def uniform(visible: torch.Tensor) -> torch.Tensor:
    """Equal weights of the visible keys [query, key]."""
    return visible / visible.sum(-1, keepdim=True)


def _ask(function: AttentionFunction) -> str:
    weights = function.weights(2, 5, causal=True)[0, 0]
    ones = torch.ones(2, 5)
    if same(weights, uniform(ones.tril())):
        return "aligned to the first key"
    if same(weights, uniform(ones.tril(3))):
        return "aligned to the last key"
    if same(weights, uniform(ones)):
        return "ignored"
    first, second = ((row > 0).nonzero().flatten().tolist() for row in weights)
    return f"the queries see the keys {first} and {second}" if first and second else OTHER


QUESTION = Question(
    "causal_fewer_queries", "attention", "Which keys does a causal flag show with 2 queries and 5 keys?",
    "With a cache, queries are the last tokens: aligned to the first key, they see none of their own history.",
    _ask, frozenset({"causal"}),
)  # fmt: skip
