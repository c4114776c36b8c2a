"""The dtype of scores in bfloat16."""

import math

import torch

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    query, key = torch.zeros(1, WIDTH), torch.zeros(2, WIDTH)
    query[0, :2] = torch.tensor([256.0, 1.0])  # scores 257 and 256: one number in bfloat16
    key[:, 0], key[0, 1] = 1.0, 1.0
    scaled = "scale" in function.takes
    if scaled:
        weights = function.weights(2, 2, dtype=torch.bfloat16, query=query, key=key, scale=1.0)[0, 0, 0]
    else:
        key = torch.cat([math.sqrt(WIDTH * 2) * key[:, :1], math.sqrt(WIDTH * 2) * key[:, 1:]], 1)
        weights = function.weights(2, 2, dtype=torch.bfloat16, query=query, key=key)[0, 0, 0]
    if same(weights, torch.full((2,), 0.5)):
        return "rounded to bfloat16 before the softmax"
    return "kept wider until the softmax" if float(weights[0]) > 0.6 else OTHER


QUESTION = Question(
    "narrow_scores", "attention", "Are scores of bfloat16 tensors rounded to bfloat16 before the softmax?",
    "Two ports of one checkpoint differ by far more than rounding of outputs explains.",
    _ask, frozenset({"scores"}),
)  # fmt: skip
