"""Programs that round tokens to a few levels, with fixed scales and with those of the data; and powers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

CAUSAL = frozenset({"causal", "batch"})


def by_tensor(m: Program, x: Tensor, scale: Tensor) -> Tensor:
    """Torch's operator with tensors of one element."""
    return torch.fake_quantize_per_tensor_affine(
        m.first(x), scale.detach(), torch.zeros(1, dtype=torch.int32), -128, 127
    )


def by_channel(m: Program, x: Tensor, axis: int) -> Tensor:
    """A scale for each index of a dimension."""
    scale = torch.full((x.shape[axis],), 0.1)
    return torch.fake_quantize_per_channel_affine(m.first(x), scale, torch.zeros_like(scale).int(), axis, -128, 127)


def attend_with(m: Program, x: Tensor, weights: Callable[[Tensor], Tensor]) -> Tensor:
    """Causal attention whose weights are computed on from those of a softmax."""
    scores = (m.first(x) @ m.second(x).mT).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -1e9)
    return weights(scores.softmax(-1)) @ m.third(x)


def ages(x: Tensor) -> Tensor:
    """How many tokens come before each."""
    return torch.arange(x.shape[1])[:, None].to(x.dtype)


PROGRAMS = [
    Case("powers of known ages", lambda m, x: m.first(x) * 0.5 ** ages(x), CAUSAL),
    Case("real tokens by powers of their ages", lambda m, x, a: (0.5 ** (a.cumsum(1) - 1).clamp(min=0)[..., None]
         * a[..., None] * m.first(x)).cumsum(1), frozenset({"causal", "padding", "batch"}), masked=True),
    Case("pads by powers of zero", lambda m, x, a: (a[..., None].to(x.dtype) ** m.second(x)
         * a[..., None] * m.first(x)).cumsum(1), frozenset({"causal", "batch"}), masked=True),
    Case("weights of eight bits", lambda m, x: attend_with(m, x, lambda w: (w * 255).round() / 255), CAUSAL),
    Case("weights rounded down", lambda m, x: attend_with(m, x, lambda w: (w * 255).trunc().floor()), CAUSAL),
    Case("weights one step higher", lambda m, x: attend_with(m, x, lambda w: (w * 255 + 1).floor()),
         frozenset({"batch"})),
    Case("rounded", lambda m, x: torch.fake_quantize_per_tensor_affine(m.first(x), 0.1, 3, -128, 127), CAUSAL),
    Case("rounded by a parameter", lambda m, x: by_tensor(m, x, m.sink.exp()), CAUSAL),
    Case("rounded by the largest", lambda m, x: by_tensor(m, x, m.first(x).abs().amax() / 127), frozenset()),
    Case("rounded by features", lambda m, x: by_channel(m, x, 2), CAUSAL),
]  # fmt: skip
MUTANTS = mutants_of(
    "theorems.operators.pointwise.value_ranges",
    M(
        "powers_of_zero_are_ordinary",
        'own[:1] if name == "pow" else [*known, *(own[1:2] if name in _DIVISIONS else [])]',
        "[]",
        program="pads by powers of zero",
    ),
)
