"""A bound on the size of a model, kept while it is being built: no tensor beyond it ever gets its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from orderproof.errors import SubjectError
from orderproof.subjects.quieting import replaced

LARGEST = 30_000_000  # [numbers] in a tiny model: 120 MB in float32


class TooLarge(SubjectError):
    """A tiny model that is not tiny."""


class _NothingHuge(TorchFunctionMode):
    """Refuse an uninitialised tensor that is larger than a whole model may be."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty and func(*args, **{**kwargs, "device": "meta"}).numel() > self.most:
            raise _too_large(self.most)
        return func(*args, **kwargs)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"a tiny version has more than {most:,} parameters; give sizes that are smaller")


@contextmanager
def bounded(most: int = LARGEST) -> Iterator[None]:
    """Raise `TooLarge` as soon as more parameters are registered, or one that is larger is asked for."""
    register = nn.Module.register_parameter
    count = 0

    def counted(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal count
        if parameter is not None and parameter.device.type != "meta":
            count += parameter.numel()
            if count > most:
                raise _too_large(most)
        register(module, name, parameter)

    with replaced(nn.Module, "register_parameter", counted), _NothingHuge(most):
        yield
