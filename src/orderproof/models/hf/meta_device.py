"""Build a model without memory for its weights: parameters on the meta device, buffers with values.

A proof for all weights needs no weights, but it needs the values of the buffers (frequencies, position ids, masks),
which constructors compute. The model is built on the CPU while every parameter moves to meta when it is registered and
every large uninitialised tensor is created on meta. Then the values of the buffers are collected, and the buffers move
to meta too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from orderproof.errors import SubjectError
from orderproof.models.hf.export_patches import patch_attribute
from orderproof.recording.late_dynamo import late_dynamo

META_THRESHOLD = 1 << 16  # [elements] larger uninitialised tensors become parameters, smaller ones may be tables

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class _EmptyOnMeta(TorchFunctionMode):
    """Create large uninitialised tensors on meta."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty and kwargs.get("device") is None:
            on_meta = func(*args, **{**kwargs, "device": "meta"})
            if on_meta.numel() > META_THRESHOLD:
                return on_meta
        return func(*args, **kwargs)


@contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Move every parameter to meta when it is registered."""
    register = nn.Module.register_parameter

    def register_on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
        register(module, name, parameter)

    with patch_attribute(nn.Module, "register_parameter", register_on_meta), _EmptyOnMeta(), torch.no_grad():
        yield


def build_on_meta(build: Callable[[], ModuleT]) -> tuple[ModuleT, dict[str, Tensor]]:
    """Build a module on meta; returns it and the values of its buffers by qualified name. Raises `SubjectError`."""
    with parameters_on_meta(), late_dynamo():
        module = build()
    values: dict[str, Tensor] = {}
    for path, part in module.named_modules():
        for name, tensor in list(vars(part).items()):
            if isinstance(tensor, Tensor) and not isinstance(tensor, nn.Parameter):
                delattr(part, name)  # a constant tensor becomes a buffer
                part.register_buffer(name, tensor, persistent=False)
        for name, buffer in list(part.named_buffers(recurse=False)):
            qualified = f"{path}.{name}" if path else name
            if buffer.device.type == "meta":
                raise SubjectError(f"buffer {qualified} has no values without weights; use --tiny or a checkpoint")
            values[qualified] = buffer.detach()
            part._buffers[name] = buffer.to("meta")
    return module, values
