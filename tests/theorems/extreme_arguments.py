"""Masked scores on which an operator acts with rare arguments: it decides whether a mask still hides something."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Case, Program, lower

MASK = -1e9


def _seen(changed: Callable[[Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
    """Attention with masked scores, to which an operator was applied."""

    def function(m: Program, x: Tensor) -> Tensor:
        scores = (m.first(x) @ m.second(x).mT / WIDTH).masked_fill(~lower(x), MASK)
        return changed(scores).softmax(-1) @ m.third(x)

    return function


def _scaled(factor: float, times: int) -> Callable[[Tensor], Tensor]:
    def changed(scores: Tensor) -> Tensor:
        for _ in range(times):
            scores = scores * factor
        return scores

    return changed


def _hidden_before(changed: Callable[[Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
    """Attention with scores that an operator made as large as the mask."""

    def function(m: Program, x: Tensor) -> Tensor:
        scores = m.first(x) @ m.second(x).mT
        return changed(scores).masked_fill(~lower(x), MASK).softmax(-1) @ m.third(x)

    return function


def _padding_only(m: Program, x: Tensor) -> Tensor:
    """The first window with gaps lies in the padding, where its maximum is -inf."""
    windows = F.max_pool1d(m.third(x)[..., :2], 2, 1, 1, dilation=3)
    return windows.clamp(min=MASK).expand(-1, -1, x.shape[1]).masked_fill(~lower(x), MASK).softmax(-1) @ x


HOLDS = {
    "scaled once": _scaled(1 / 64, 1),
    "scaled twice": _scaled(1 / 8, 2),
    "divided twice": lambda s: s / 8 / 4,
    "scaled up and down": lambda s: s * 4 / 8,
    "clamped at the mask": lambda s: s.clamp(min=MASK),
    "clamped above": lambda s: s.clamp(min=MASK, max=100.0),
}
LEAKS = {
    "scaled six times": _scaled(1 / 64, 6),
    "divided six times": lambda s: s / 64 / 64 / 64 / 64 / 64 / 64,
    "clamped below the mask": lambda s: torch.clamp(s, max=MASK),
    "clipped below the mask": lambda s: torch.clip(s, max=MASK),
    "clamped by a tensor": lambda s: torch.clamp(s, max=torch.tensor(MASK)),
    "clamped to the mask": lambda s: s.clamp(min=MASK, max=MASK),
    "smallest with the mask": lambda s: torch.minimum(s, torch.tensor(MASK)),
    "softplus that is taken away": lambda s: s - F.softplus(s, beta=-1),
    "softplus with a small beta": lambda s: F.softplus(s, beta=1e-12) * -1,
    "sum with a small factor": lambda s: torch.add(torch.zeros(()), s, alpha=1e-9),
    "difference with a small factor": lambda s: torch.rsub(-s, 0, alpha=1e-9),
    "negative": lambda s: -s,
    "divided by a mask": lambda s: s / -MASK,
    "times a small tensor": lambda s: s * torch.tensor(1e-9),
    "tanh": torch.tanh,
    "threshold": lambda s: F.threshold(s, 1e3, MASK),
    "numbers for infinity": lambda s: torch.nan_to_num(s.masked_fill(s < -1e8, -torch.inf), neginf=0.0),
}
ORDINARY = {
    "clamped at infinity": lambda s: s.clamp(max=torch.inf),
    "clamped nowhere": lambda s: s.clamp(min=-torch.inf, max=torch.inf),
    "clamped from above": lambda s: s.clamp(max=5.0),
    "softplus": F.softplus,
    "divided by a number": lambda s: s / 0.1,
}
LARGE = {
    "divided by a small number": lambda s: -s.abs() / 1e-9,
    "divided by a small tensor": lambda s: -s.abs() / torch.tensor(1e-9),
    "divided down to whole numbers": lambda s: torch.floor_divide(-s.abs(), 1e-9),
    "times a large number": lambda s: -s.abs() * 1e9,
    "kept below the mask": lambda s: torch.clamp(s, max=MASK),
    "less a large multiple": lambda s: torch.rsub(s.abs(), 0, alpha=1e9),
}
EXTREME = [
    *(Case(f"scores {name}", _seen(changed), frozenset({"causal", "batch"})) for name, changed in HOLDS.items()),
    *(Case(f"scores {name}", _seen(changed), frozenset({"batch"})) for name, changed in LEAKS.items()),
    *(Case(f"scores {name}", _hidden_before(f), frozenset({"causal", "batch"})) for name, f in ORDINARY.items()),
    *(Case(f"scores {name}", _hidden_before(changed), frozenset({"batch"})) for name, changed in LARGE.items()),
    Case("windows of padding", _padding_only, frozenset({"batch"})),
]
