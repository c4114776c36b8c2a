"""The truth about a law of a module, established by runs in float64. This file does not import orderproof.

A law that a run contradicts is false; one that no run contradicts counts as true. Weights are perturbed so that no zero
of an initialisation hides a dependence.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from foreign_case import Case
from torch import Tensor, nn

RUNS = 4  # pairs of runs for each law
DIFFERS = 1e-7  # relative; rounding of float64 is some 1e-15


def truths(case: Case) -> dict[str, bool | None]:
    """Each law of the first output: true, false, or None where it has no meaning."""
    warnings.simplefilter("ignore")
    module = copy.deepcopy(case.module()).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    inputs = tuple(x.double() if x.is_floating_point() else x for x in case.inputs())
    rows = 1 - case.token_axis if case.token_axis < 2 and case.axes[0] == "t" else 0
    return {
        "causal": _causal(module, case, inputs, generator) if "t" in case.axes else None,
        "permutation": _permutation(module, case, inputs, generator),
        "batch": _batch(module, case, inputs, rows, generator) if "b" in case.axes else None,
    }


def first_output(module: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """The first tensor that a module returns, with the same random numbers in every call."""
    torch.manual_seed(0)
    with torch.no_grad():
        found = _first_tensor(module(*(x.clone() for x in inputs)))
    assert found is not None
    return found


def _first_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next((x for x in map(_first_tensor, parts) if x is not None), None)


def _other(x: Tensor, generator: torch.Generator) -> Tensor:
    if x.is_floating_point():
        return torch.randn(x.shape, generator=generator, dtype=x.dtype)
    return torch.randint(int(x.max()) + 1, x.shape, generator=generator)


def _differs(first: Tensor, second: Tensor) -> bool:
    return float((first - second).abs().max()) > DIFFERS * float(first.abs().max().clamp_min(1e-30))


def _causal(module: nn.Module, case: Case, inputs: tuple[Tensor, ...], generator: torch.Generator) -> bool:
    x, axis, out = inputs[0], case.token_axis, case.axes.index("t")
    before = first_output(module, inputs)
    extra = before.shape[out] - x.shape[axis]
    for cut in range(1, x.shape[axis]):
        mixed = torch.cat([x.narrow(axis, 0, cut), _other(x, generator).narrow(axis, cut, x.shape[axis] - cut)], axis)
        after = first_output(module, (mixed, *inputs[1:]))
        if _differs(before.narrow(out, 0, cut + extra), after.narrow(out, 0, cut + extra)):
            return False
    return True


def _permutation(module: nn.Module, case: Case, inputs: tuple[Tensor, ...], generator: torch.Generator) -> bool:
    x, axis = inputs[0], case.token_axis
    before = first_output(module, inputs)
    for _ in range(RUNS):
        order = torch.randperm(x.shape[axis], generator=generator)
        after = first_output(module, (x.index_select(axis, order), *inputs[1:]))
        expected = before.index_select(case.axes.index("t"), order) if "t" in case.axes else before
        if _differs(expected, after):
            return False
    return True


def _batch(module: nn.Module, case: Case, inputs: tuple[Tensor, ...], rows: int, generator: torch.Generator) -> bool:
    x, out = inputs[0], case.axes.index("b")
    before = first_output(module, inputs)
    for row in range(x.shape[rows]):
        changed = x.clone()
        changed.select(rows, row).copy_(_other(x, generator).select(rows, row))
        after = first_output(module, (changed, *inputs[1:]))
        kept = torch.tensor([k for k in range(x.shape[rows]) if k != row])
        if _differs(before.index_select(out, kept), after.index_select(out, kept)):
            return False
    return True
