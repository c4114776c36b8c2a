"""A causal flag together with the keys of earlier calls."""

import torch

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.attention.questions.causal_fewer_queries import uniform
from orderproof.conventions.question import OTHER, Question, same

PAST, NEW = 3, 2


def _ask(function: AttentionFunction) -> str:
    values = torch.eye(PAST + NEW, WIDTH)[None, None]
    zeros = torch.zeros_like(values)
    found = function.attend(
        zeros[:, :, :NEW], zeros[:, :, :NEW], values[:, :, PAST:], causal=True,
        past=(zeros[:, :, :PAST], values[:, :, :PAST]),
    )  # fmt: skip
    weights, ones = found[0, 0, :, : PAST + NEW].float(), torch.ones(NEW, PAST + NEW)
    cases = {
        "all earlier keys, and the new ones up to the query": ones.tril(PAST),
        "earlier keys counted as if the queries were first": ones.tril(),
        "every key": ones,
    }
    return next((name for name, seen in cases.items() if same(weights, uniform(seen))), OTHER)


QUESTION = Question(
    "causal_past", "attention", "Which keys does a causal flag show to 2 queries after 3 keys of earlier calls?",
    "A second chunk of a prompt sees none of the first, or sees its own later tokens.",
    _ask, frozenset({"causal", "past"}),
)  # fmt: skip
