"""An architecture without its weights: parameters on meta, buffers real.

A proof for all weights needs no weights, but it needs the values of the buffers (frequencies,
position numbers, masks), which constructors compute. So a model is built on the CPU while every
parameter is sent to meta the moment it is registered, and every large uninitialised tensor is made
there in the first place; then the buffers are put aside and the model follows its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from orderproof.errors import SubjectError
from orderproof.subjects.quieting import replaced

LARGE = 1 << 16  # [elements] an uninitialised tensor of more is a parameter to be, not a table being filled

Built = TypeVar("Built", bound=nn.Module)


class _EmptyOnMeta(TorchFunctionMode):
    """Make large uninitialised tensors on meta."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty and kwargs.get("device") is None:
            made = func(*args, **{**kwargs, "device": "meta"})
            if made.numel() > LARGE:
                return made
        return func(*args, **kwargs)


@contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Send every parameter to meta as it is registered."""
    register = nn.Module.register_parameter

    def register_on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
        register(module, name, parameter)

    with replaced(nn.Module, "register_parameter", register_on_meta), _EmptyOnMeta(), torch.no_grad():
        yield


def build_weightless(build: Callable[[], Built]) -> tuple[Built, dict[str, Tensor]]:
    """Build a module wholly on meta, and give the real values of its buffers by qualified name."""
    with parameters_on_meta():
        module = build()
    values: dict[str, Tensor] = {}
    for path, part in module.named_modules():
        for name, tensor in list(vars(part).items()):
            if isinstance(tensor, Tensor) and not isinstance(tensor, nn.Parameter):
                delattr(part, name)  # a constant kept as a plain attribute: a buffer in all but name
                part.register_buffer(name, tensor, persistent=False)
        for name, buffer in list(part.named_buffers(recurse=False)):
            qualified = f"{path}.{name}" if path else name
            if buffer.device.type == "meta":
                raise SubjectError(f"buffer {qualified} has no values without weights; use --tiny or a checkpoint")
            values[qualified] = buffer.detach()
            part._buffers[name] = buffer.to("meta")
    return module, values
