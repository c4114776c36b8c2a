"""Which tensors of a recording share memory: a write to one of them also changes the others.

In a recording each tensor of the module has a storage of its own. Two tensors that share memory under different names
(a buffer and a part of it) would therefore keep different values after a write, so such a write is refused. So is one
to memory that something other than a tensor may read, such as an array of numpy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orderproof.recording.elements import MAX_COMPARED, Range, overlaps, places
from orderproof.recording.recorded_graph import Alias

LIFTED = "constant_"  # begins the name of a tensor that the module does not hold under a name
_NO_OVERLAP = 0
EVERYWHERE: Range = (1, 1 << 64)  # of an object whose memory is not known


@dataclass
class _Use:
    """A real tensor that a recording uses, its memory, and its values before the call if they are compared."""

    name: str
    tensor: Tensor
    memory: Range
    alias: Alias
    before: Tensor | None


class SharedMemory:
    """The memory of the real tensors that a recording uses.

    Args:
        arrays: The name and the memory of each object besides tensors that the module reaches.

    """

    def __init__(self, arrays: Iterable[tuple[str, Range]]) -> None:
        self._arrays = list(arrays)
        self._used: dict[int, _Use] = {}  # by id of a storage
        self._written: list[_Use] = []
        self._watched: dict[int, _Use] = {}  # whose memory an array may share

    def add(self, name: str, tensor: Tensor, alias: Alias, *, trained: bool) -> str:
        """Add a tensor that the recording uses; why it cannot follow it, if it cannot."""
        memory = memory_of(tensor)
        if memory is None:
            return ""
        before = None if trained or tensor.numel() > MAX_COMPARED else tensor.detach().clone()
        use = _Use(name, tensor, memory, alias, before)
        for written in self._written:
            if overlaps(written.memory, memory) and _share_elements(written.tensor, tensor):
                return f"it uses {name}, which shares memory with {written.name}, to which it writes"
        self._used[id(alias.storage)] = use
        if self._may_share_an_array(use):
            self._watched[id(alias.storage)] = use
        return ""

    def _may_share_an_array(self, use: _Use) -> bool:
        # Torch marks a storage that was made from an array, or from which one was made. Arrays over a tensor of the
        # module are looked for by a walk; an array of the call itself is found by none.
        marked = use.name.startswith(LIFTED) and not use.tensor.untyped_storage().resizable()
        return marked or any(overlaps(memory, use.memory) for _, memory in self._arrays)

    def refusal_of_use(self, alias: Alias) -> str:
        """Why a use of a tensor cannot be recorded: an array changed its values; empty if it can."""
        use = self._watched.get(id(alias.storage))
        return f"the values of {use.name} change without an operator" if use and _is_changed(use) else ""

    def refusal_of_write(self, alias: Alias) -> str:
        """Why a write to a tensor cannot be recorded; empty if it can."""
        use = self._used.get(id(alias.storage))
        if use is None:  # the call created it
            return ""
        name, tensor = use.name, use.tensor
        for other in self._used.values():
            if other is not use and overlaps(other.memory, use.memory) and _share_elements(other.tensor, tensor):
                return f"it writes to {name}, which shares memory with {other.name}"
        for array, memory in self._arrays:
            if overlaps(memory, use.memory):
                return f"it writes to {name}, which shares memory with {array}"
        if id(alias.storage) in self._watched:
            return f"it writes to {name}, whose memory an array may share"
        if _overlaps_itself(tensor) or tensor.is_shared():  # type: ignore[no-untyped-call]
            return f"it writes to {name}, whose elements share memory"
        self._written.append(use)
        return ""

    def changed(self) -> str:
        """The first tensor whose values the call changed without an operator; empty if there is none."""
        return next((use.name for use in self._used.values() if _is_changed(use)), "")


def _share_elements(first: Tensor, second: Tensor) -> bool:
    """True if two tensors whose ranges overlap have an element in common; True if that is not plain."""
    if first.element_size() != second.element_size() or max(first.numel(), second.numel()) > MAX_COMPARED:
        return True
    starts, others = _addresses(first), _addresses(second)
    if int((starts[0] - others[0]) % first.element_size()):
        return True
    return bool(torch.isin(starts, others).any())


def _overlaps_itself(x: Tensor) -> bool:
    """True if two elements of a tensor are one place in memory; True if that is not plain."""
    if torch._debug_has_internal_overlap(x) == _NO_OVERLAP:
        return False
    return x.numel() > MAX_COMPARED or len(torch.unique(_addresses(x))) < x.numel()


def _addresses(x: Tensor) -> Tensor:
    """The address of each element."""
    memory = memory_of(x)
    assert memory is not None
    return memory[0] + places(x)


def _is_changed(use: _Use) -> bool:
    return use.before is not None and not same_bytes(use.tensor, use.before)


def same_bytes(first: Tensor, second: Tensor) -> bool:
    """True if two tensors of one shape and dtype hold the same bits."""
    pair = [x.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8) for x in (first, second)]
    return torch.equal(*pair)


def memory_of(x: Tensor) -> Range | None:
    """The memory between the first and the last element of a tensor; None if it has none."""
    storage = storage_of(x)
    if storage is None or not x.numel():
        return None
    first = int(x.storage_offset())
    last = first + sum(int(size - 1) * int(stride) for size, stride in zip(x.shape, x.stride(), strict=True))
    return storage[0] + first * x.element_size(), storage[0] + (last + 1) * x.element_size()


def storage_of(x: Tensor) -> Range | None:
    """The memory of a tensor's storage; None if it has none."""
    if x.is_meta or type(x).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return None
    try:
        storage = x.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError):  # a layout without a storage
        return None
    return (start, start + size) if start and size else None


def memory_of_array(x: Any) -> Range:
    """The memory between the first and the last element of an array of numpy."""
    start = x.__array_interface__["data"][0]
    steps = [(size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True)] if x.size else []
    return start + sum(min(s, 0) for s in steps), start + sum(max(s, 0) for s in steps) + x.itemsize


def overlaps_any(memory: Range | None, others: Iterable[Range]) -> bool:
    """True if a range has a byte in common with one of the others."""
    return memory is not None and any(overlaps(memory, other) for other in others)
