"""Programs with functions of single elements that models rarely use."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import Case

FUNCTIONS = (
    torch.asinh, torch.sinc, torch.frac, torch.angle, torch.lgamma, torch.digamma, torch.signbit, torch.isfinite,
    torch.isposinf, torch.isneginf, torch.deg2rad, torch.rad2deg, F.softshrink, F.hardshrink,
)  # fmt: skip
OF_TWO = (torch.hypot, torch.fmax, torch.fmin, torch.copysign, torch.heaviside, torch.logaddexp, torch.logaddexp2)


def functions(x: Tensor, other: Tensor) -> Tensor:
    """The sum of functions of each element."""
    found = x + F.threshold(x, 0.1, -2.0) + torch.log10(x.abs() + 1) + torch.xlogy(x, other.abs() + 1)
    for function in FUNCTIONS:
        found = found + function(x)
    for function in OF_TWO:
        found = found + function(x, other)
    return found + torch.atanh(x.tanh() * 0.5) + torch.acosh(x.abs() + 1)


PROGRAMS = [
    Case("functions of elements", lambda m, x: functions(m.first(x), x), frozenset({"causal", "batch"})),
    Case("functions of the mean token", lambda m, x: functions(x, x.mean(1, True)), frozenset({"batch"})),
    Case("functions of the mean row", lambda m, x: functions(x.mean(0, True), x), frozenset({"causal"})),
]
