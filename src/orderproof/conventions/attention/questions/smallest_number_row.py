"""The output of a query to whose scores the smallest finite number is added."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import KEYS, effect, first_key_marked, row_answer
from orderproof.conventions.question import Question
from orderproof.records.conventions import NOT_TAKEN


def _ask(function: AttentionFunction) -> str:
    if effect(function, first_key_marked(torch.float32)) != "added to the score":
        return NOT_TAKEN
    mask = torch.zeros(KEYS, KEYS)
    mask[1] = torch.finfo(torch.float32).min
    return row_answer(function.masked_weights(mask)[1])


QUESTION = Question(
    "smallest_number_row", "attention", "What does a query give if the smallest finite number is added to all scores?",
    "A mask of finite numbers gives hidden keys equal weights; minus infinity gives NaN or zeros.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
