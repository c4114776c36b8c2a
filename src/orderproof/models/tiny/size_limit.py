"""A limit on the size of a model while it is built: a larger tensor is refused before it gets memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from orderproof.errors import SubjectError
from orderproof.models.hf.export_patches import patch_attribute

MAX_PARAMETERS = 30_000_000  # of a tiny model: 120 MB in float32


class TinyModelTooLarge(SubjectError):
    """A tiny model with too many parameters."""


class _TensorSizeGuard(TorchFunctionMode):
    """Refuse an uninitialised tensor with more elements than a model may have parameters."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty and func(*args, **{**kwargs, "device": "meta"}).numel() > self.limit:
            raise _too_large(self.limit)
        return func(*args, **kwargs)


def _too_large(limit: int) -> TinyModelTooLarge:
    return TinyModelTooLarge(f"the tiny model has more than {limit:,} parameters; set smaller sizes")


@contextmanager
def limit_parameters(limit: int = MAX_PARAMETERS) -> Iterator[None]:
    """Raise `TinyModelTooLarge` when more parameters are registered, or a larger tensor is created."""
    register = nn.Module.register_parameter
    count = 0

    def register_within_limit(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal count
        if parameter is not None and parameter.device.type != "meta":
            count += parameter.numel()
            if count > limit:
                raise _too_large(limit)
        register(module, name, parameter)

    with patch_attribute(nn.Module, "register_parameter", register_within_limit), _TensorSizeGuard(limit):
        yield
