"""Loops over an open range that keep a list where no local variable shows it, and cut it off at many iterations."""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from orderproof import prove
from tests.function_module import Function
from tests.pairs import one_in

LONG = 400  # more iterations than a test of a theorem runs
STORED = torch.zeros(1)
STACK = torch.stack
OPERAND_OF_LONG = operator.attrgetter(".".join(["grad"] * LONG))
ONE = object()


class Reversed(TorchFunctionMode):
    """Stacks the second part of a long list in reverse."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.stack:
            args = (args[0][:LONG] + args[0][LONG:][::-1], *args[1:])
        return function(*args, **(kwargs or {}))


class Keeping(TorchFunctionMode):
    """Keeps what a loop computes."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function is torch.tanh:
            self.kept.append(result)
        return result + self.kept[-1][:, None] if function is torch.stack and self.kept[LONG:] else result


class OtherTorch:
    """A name `torch` whose `stack` is not that of torch."""

    tanh = staticmethod(torch.tanh)

    @staticmethod
    def stack(tensors: list[Tensor], dim: int) -> Tensor:
        return STACK(tensors[:LONG] + tensors[LONG:][::-1], dim)


def under_a_mode_afterwards(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i])
        found.append(h)
    with Reversed():
        return torch.stack(found, 1)


def under_a_mode(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    with Keeping():
        for i in range(x.shape[1]):
            h = torch.tanh(h + x[:, i])
            found.append(h)
        return torch.stack(found, 1)


def by_another_name(x: Tensor) -> Tensor:
    h, found = x[:, 0] * 0, []
    torch.stack = OtherTorch.stack  # type: ignore[assignment]
    try:
        for i in range(x.shape[1]):
            h = torch.tanh(h + x[:, i])
            found.append(h)
        return torch.stack(found, 1)
    finally:
        torch.stack = STACK


def with_another_torch(x: Tensor, torch: Any = OtherTorch) -> Tensor:
    h, found = x[:, 0] * 0, []
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i])
        found.append(h)
    return torch.stack(found, 1)  # type: ignore[no-any-return]


def with_a_list_on_its_state(x: Tensor) -> Tensor:
    h: Any = torch.zeros_like(x[:, 0])
    found, h.kept = [], []
    for i in range(x.shape[1]):
        kept = [*h.kept, h]
        h = torch.tanh(h + (x.mean(1) if kept[LONG:] else x[:, i]))
        h.kept = kept
        kept = None
        found.append(h)
    return torch.stack(found, 1)


def with_a_list_on_a_token(x: Tensor) -> Tensor:
    first: Any = x[:, 0]
    h, found, first.kept = torch.zeros_like(first), [], ()
    for i in range(x.shape[1]):
        first.kept = (*first.kept, None)
        h = torch.tanh(h + (x.mean(1) if first.kept[LONG:] else x[:, i]))
        found.append(h)
    return torch.stack(found, 1)


def with_a_list_on_a_storage(x: Tensor) -> Tensor:
    storage: Any = STORED.untyped_storage()
    h, found, storage.kept = torch.zeros_like(x[:, 0]), [], ()
    for i in range(x.shape[1]):
        storage.kept = (*storage.kept, None)
        h = torch.tanh(h + (x.mean(1) if storage.kept[LONG:] else x[:, i] + STORED))
        found.append(h)
    return torch.stack(found, 1)


def with_a_chain_of_gradients(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        after = torch.tanh(h + x[:, i])
        after.grad = h
        h = after
        after = None  # type: ignore[assignment]
        found.append(h)
    y = torch.stack(found, 1)
    try:
        OPERAND_OF_LONG(h)
    except AttributeError:
        return y
    return y + h[:, None]


def in_the_environment(x: Tensor) -> Tensor:
    return in_a_library(x, os.environ._data)


def among_the_loggers(x: Tensor) -> Tensor:
    return in_a_library(x, logging.root.manager.loggerDict)


def in_a_library(x: Tensor, kept: Any) -> Tensor:
    h, found, kept["seen"] = torch.zeros_like(x[:, 0]), [], []
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i])
        kept["seen"] = [*kept["seen"], h]
        found.append(h)
    y = torch.stack(found, 1)
    late = kept.pop("seen")[LONG:]
    return y + late[-1][:, None] if late else y


class OnBuffer(nn.Module):
    """Keeps a list on a buffer."""

    scale: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        h, found, self.scale.kept = torch.zeros_like(x[:, 0]), [], ()
        for i in range(x.shape[1]):
            self.scale.kept = (*self.scale.kept, [ONE])
            h = torch.tanh(h + (x.mean(1) if self.scale.kept[LONG:] else x[:, i]))
            found.append(h)
        return torch.stack(found, 1)


HIDDEN = (
    under_a_mode_afterwards, under_a_mode, by_another_name, with_another_torch, with_a_list_on_its_state,
    with_a_list_on_a_token, with_a_list_on_a_storage, with_a_chain_of_gradients,
    in_the_environment, among_the_loggers,
)  # fmt: skip


@pytest.mark.parametrize("function", one_in(2, HIDDEN))
def test_a_loop_that_keeps_a_list_out_of_sight_has_no_theorem(function: Callable[[Tensor], Tensor]) -> None:
    finding = prove(Function(function).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


def test_a_loop_that_keeps_a_list_on_a_buffer_has_no_theorem() -> None:
    finding = prove(OnBuffer().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved
