"""The keys at which an integer mask is 1."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import effect, effect_text, first_key_marked
from orderproof.conventions.question import Question


def _ask(function: AttentionFunction) -> str:
    return effect_text("1", effect(function, first_key_marked(torch.int64)))


QUESTION = Question(
    "integer_mask", "attention", "What does 1 in a mask of integers, as tokenizers give it, do to a key?",
    "A tokenizer's mask that is added to scores hides nothing and favours real tokens a little.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
