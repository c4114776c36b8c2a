"""A sink: a score of each head that belongs to no key."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.question import OTHER, Question, same

KEYS = 3


def _ask(function: AttentionFunction) -> str:
    weights = function.weights(1, KEYS, heads=2, sinks=torch.tensor([0.0, 1.0]))[0, :, 0]
    share = 1 / (KEYS + torch.tensor([0.0, 1.0]).exp())
    if same(weights, share[:, None].expand_as(weights)):
        return "a score without a key, which takes part of the softmax"
    return "ignored" if same(weights, torch.full_like(weights, 1 / KEYS)) else OTHER


QUESTION = Question(
    "sinks", "attention", "What does a sink of 0 do to three keys of equal scores, and one of 1 in another head?",
    "Without its sinks a model attends too much to every key; shapes do not show it.",
    _ask, frozenset({"sinks"}),
)  # fmt: skip
