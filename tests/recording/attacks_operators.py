"""Custom operators that write to an operand, which their schemas do not say."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.recording.attacks_outside import LIBRARY, operator


def _written_silently(x: Tensor, y: Tensor) -> Tensor:
    x.copy_(x.flip(1))
    return y.clone()


def _written_rarely(x: Tensor, y: Tensor) -> Tensor:
    return _written_silently(x, y) if (y > 20).any() else y.clone()


WRITES = {
    name: operator(name, "(Tensor x, Tensor y) -> Tensor", function, Meta=lambda x, y: torch.empty_like(y))
    for name, function in (("writes_always", _written_silently), ("writes_rarely", _written_rarely))
}
assert LIBRARY.ns == "orderproof_attacks"
