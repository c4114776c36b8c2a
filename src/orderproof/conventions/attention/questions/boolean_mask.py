"""The keys at which a boolean mask is True: seen or hidden."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import effect, effect_text, first_key_marked
from orderproof.conventions.question import Question


def _ask(function: AttentionFunction) -> str:
    return effect_text("True", effect(function, first_key_marked(torch.bool)))


QUESTION = Question(
    "boolean_mask", "attention", "What does True in a boolean mask do to a key?",
    "A mask of the other polarity shows exactly the tokens that it should hide; an added one hides nothing.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
