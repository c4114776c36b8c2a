"""Calls that show if a model does something besides where a mask selects no row, against what `every_row` assumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import CaptureError
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.eager_check import prepared_call
from orderproof.recording.owned_state import OwnedState
from orderproof.recording.refusal import NOT_RECORDED
from orderproof.recording.selected_rows import called, computes_every_row
from orderproof.seeded_random import seeded_random

_FACTORS = (1, 4, -4)  # of the vectors of tokens: a mask that compares them with a number selects all or none
_ROUNDING = {torch.float64: 1e-8, torch.float32: 1e-4}  # relative to the largest number
Inputs = tuple[Tensor, ...]


def compare_few_rows(module: nn.Module, inputs: Inputs, written: list[Tensor], reached: OwnedState) -> None:
    """Compare calls in which masks select few rows with those of which every row is computed.

    In some calls all tokens are equal, so that most experts get none. In others no mask selects a row, and questions
    for selected rows are answered with yes, and with no.

    Raises:
        CaptureError: Two calls differ.

    """
    if not computes_every_row():
        return

    def run(call: Callable[[Inputs], Any], given: Inputs) -> dict[str, Any]:
        with seeded_random(0), prepared_call(module, given, written, reached) as (copies, _):
            return leaves_by_name(call(copies))

    pairs = [
        (run(lambda x: module(*x), equal), run(lambda x: called(module, x), equal)) for equal in _equal_tokens(inputs)
    ]
    pairs.append((
        run(lambda x: called(module, x, answer=True), inputs), run(lambda x: called(module, x, answer=False), inputs),
    ))  # fmt: skip
    if not all(_are_same(one, other) for one, other in pairs):
        raise CaptureError(f"{NOT_RECORDED}where a mask selects no row, it does more than to leave rows as they are")


def _equal_tokens(inputs: Inputs) -> Iterator[Inputs]:
    """The inputs with all tokens equal to the first one, or to a multiple of it."""
    vectors = any(x.is_floating_point() and x.dim() > 1 for x in inputs)
    for factor in _FACTORS if vectors else _FACTORS[:1]:
        yield tuple(_first_everywhere(x, factor) for x in inputs)


def _first_everywhere(x: Tensor, factor: int) -> Tensor:
    if not x.numel() or not x.dim():
        return x
    if not x.is_floating_point() or x.dim() == 1:
        return x.flatten()[0].expand_as(x)
    return (x.flatten(0, -2)[0] * factor).expand_as(x)


def _are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_is_same(one[name], other[name]) for name in one)


def _is_same(one: object, other: object) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    dtype, one, other = one.dtype, one.double(), other.double()
    size = float(one[one.isfinite()].abs().max()) if one.isfinite().any() else 0.0
    return torch.allclose(one, other, rtol=0, atol=size * _ROUNDING.get(dtype, 0.02), equal_nan=True)
