"""Causal attention whose visible scores a number among the arguments makes lower than the mask of later tokens."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import Case, Program, lower

MASK, LOWER = -1e9, -1e30


def _attending(change: Callable[[Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
    def attend(m: Program, x: Tensor) -> Tensor:
        scores = change(m.first(x) @ m.second(x).mT)
        return scores.masked_fill(~lower(x), MASK).softmax(-1) @ m.third(x)

    return attend


def _first(scores: Tensor) -> Tensor:
    return torch.zeros(1, dtype=torch.long)


def _diagonal(scores: Tensor) -> Tensor:
    return torch.arange(scores.shape[1])[:, None]


def _bias(scores: Tensor) -> Tensor:
    return torch.zeros(scores.shape[1], scores.shape[1])


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "scatter": lambda s: s + _bias(s).scatter(1, _diagonal(s), LOWER),
    "scatter of minus infinity": lambda s: s + _bias(s).scatter(1, _diagonal(s), float("-inf")),
    "index_fill": lambda s: s.index_fill(2, _first(s), LOWER),
    "index_add": lambda s: s.index_add(2, _first(s), torch.ones_like(s[..., :1]), alpha=LOWER),
    "add": lambda s: torch.add(s, torch.ones(1), alpha=LOWER),
    "addcmul": lambda s: torch.addcmul(s, torch.ones(1), torch.ones(1), value=LOWER),
    "elu": lambda s: F.elu(-s.abs() - 1, -LOWER),
    "leaky_relu": lambda s: F.leaky_relu(-s.abs() - 1, -LOWER),
    "arange": lambda s: s + torch.arange(3 * LOWER, 0.0, -LOWER)[:1],
    "baddbmm": lambda s: torch.baddbmm(s, torch.ones_like(s[..., :1]), torch.ones_like(s[:, :1]), alpha=LOWER),
    "lerp": lambda s: torch.lerp(s, -torch.ones(1), -LOWER),
    "threshold": lambda s: F.threshold(s, 1e3, LOWER),
}
LARGE_NUMBERS = [
    Case(f"{name} with a large number", _attending(change), frozenset({"batch"})) for name, change in CHANGES.items()
]
RECHECKED = [
    case for case in LARGE_NUMBERS if case.name.split()[0] in ("scatter", "elu", "leaky_relu", "arange")
]  # the recheck has no rule for the other operators
