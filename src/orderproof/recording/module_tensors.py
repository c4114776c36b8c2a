"""The tensors of a module by name, and which of them are trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.recording.elements import Range
from orderproof.recording.memory import overlaps_any, storage_of


class ModuleTensors:
    """The tensors of a module by name.

    Args:
        module: The module.
        trained: Parameters that it reaches, also those that no module holds.

    """

    def __init__(self, module: nn.Module, trained: Sequence[Tensor] = ()) -> None:
        self.names: dict[int, str] = {}  # by id of the real tensor: its first name
        self.by_memory: dict[tuple[Any, ...], str] = {}
        self.real: dict[str, Tensor] = {}
        self.parameters: set[str] = set()
        self._trained_memory: dict[Range, None] = {}
        self._trained_storages: set[int] = set()  # on the meta device, where none has memory
        named = [
            *((name, x, True) for name, x in module.named_parameters()),
            *((name, x, False) for name, x in module.named_buffers()),
        ]
        for tensor in trained:
            self.add_trained(tensor)
        for name, tensor, is_parameter in named:
            self.add(name, tensor, trained=is_parameter)
        self.attributes = {
            id(value): f"{path}.{key}".removeprefix(".")
            for path, part in module.named_modules()
            for key, value in vars(part).items()
            if isinstance(value, Tensor)
        }

    def add(self, name: str, tensor: Tensor, *, trained: bool) -> None:
        """Add a tensor under its name. It is trained if it is a parameter, or shares the memory of one."""
        self.names.setdefault(id(tensor), name)
        if not tensor.is_meta:
            self.by_memory.setdefault(_memory(tensor), name)
        self.real[name] = tensor
        if trained or self.is_trained(tensor):
            self.parameters.add(name)
            self.add_trained(tensor)

    def add_trained(self, tensor: Tensor) -> None:
        """Note that the memory of a tensor is trained."""
        if tensor.is_meta:
            self._trained_storages.add(tensor.untyped_storage()._cdata)
        elif (memory := storage_of(tensor)) is not None:
            self._trained_memory[memory] = None

    def is_trained(self, tensor: Tensor) -> bool:
        """True of a parameter, wherever it is kept, and of a tensor that shares the memory of one."""
        if isinstance(tensor, nn.Parameter) or tensor.requires_grad:
            return True
        if tensor.is_meta:
            return tensor.untyped_storage()._cdata in self._trained_storages
        return overlaps_any(storage_of(tensor), self._trained_memory)

    def name_of(self, tensor: Tensor) -> str | None:
        """The name of a tensor of the module: the same object, or the same memory in the same layout."""
        return self.names.get(id(tensor)) or (None if tensor.is_meta else self.by_memory.get(_memory(tensor)))


def _memory(x: Tensor) -> tuple[Any, ...]:
    if x.layout is not torch.strided:  # sparse: a recording refuses it where it is used
        return (id(x),)
    storage = x.untyped_storage()
    start = storage.data_ptr() if storage.nbytes() else storage._cdata
    return start, x.storage_offset(), tuple(x.shape), tuple(x.stride()), x.dtype, x.is_conj(), x.is_neg()
