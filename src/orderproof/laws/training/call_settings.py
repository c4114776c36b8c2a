"""The mode, the gradients and the casts of a model, for one block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def training_mode(model: nn.Module) -> Iterator[None]:
    """Training mode in a block, after which all modes and buffers are as before."""
    modes = {module: module.training for module in model.modules()}
    buffers = {buffer: buffer.detach().clone() for buffer in model.buffers()}
    for module in modes:
        module.training = True
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        with torch.no_grad():
            for buffer, value in buffers.items():
                buffer.copy_(value)


@contextmanager
def own_gradients(model: nn.Module) -> Iterator[None]:
    """A block in which parameters have no gradient at first, after which they have the ones that they had."""
    before = {parameter: parameter.grad for parameter in model.parameters()}
    for parameter in before:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in before.items():
            parameter.grad = gradient


@contextmanager
def without_autocast() -> Iterator[None]:
    """A block in which no call is cast, whatever asks for it."""
    enter = torch.autocast.__enter__

    def enter_disabled(self: Any) -> Any:
        self._enabled = False
        return enter(self)  # type: ignore[no-untyped-call]

    torch.autocast.__enter__ = enter_disabled  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.autocast.__enter__ = enter  # type: ignore[method-assign]
