"""The keys that a length shows."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.question import OTHER, Question, same


def _ask(function: AttentionFunction) -> str:
    weights = function.weights(4, 4, lengths=torch.tensor([2]))[0, 0]
    sides = {"the first keys": (1.0, 1.0, 0.0, 0.0), "the last keys": (0.0, 0.0, 1.0, 1.0)}
    for name, side in sides.items():
        row = torch.tensor(side) / 2
        if same(weights[2:] if name == "the last keys" else weights[:2], row.expand(2, 4)):
            pads = weights[:2] if name == "the last keys" else weights[2:]
            what = "NaN" if bool(pads.isnan().all()) else "zeros" if same(pads, 0 * pads) else "what others give"
            return f"{name}; queries of pads give {what}"
    return "ignored" if same(weights, torch.full((4, 4), 0.25)) else OTHER


QUESTION = Question(
    "lengths", "attention", "Which keys does a length of 2 of 4 tokens show, and what do queries of pads give?",
    "Lengths say nothing of the side of pads: left-padded rows lose their real tokens.",
    _ask, frozenset({"lengths"}),
)  # fmt: skip
