"""Which tensors of a recording share memory: a write to one of them also changes the others.

In a recording each tensor of the module has a storage of its own. Two tensors that share memory under different names
(a buffer and a part of it) would therefore keep different values after a write, so such a write is refused. So is one
to memory that something other than a tensor may read, such as an array of numpy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from orderproof.prover.recording.recorded_graph import Alias

Range = tuple[int, int]  # the address of the first byte, and of the one after the last


class SharedMemory:
    """The memory of the real tensors that a recording uses.

    Args:
        arrays: The name and the memory of each object besides tensors that the module reaches.

    """

    def __init__(self, arrays: Iterable[tuple[str, Range]]) -> None:
        self._arrays = list(arrays)
        self._used: list[tuple[str, Range, Alias]] = []
        self._written: list[tuple[str, Range]] = []
        self._real: dict[int, tuple[str, Tensor]] = {}  # by id of a storage

    def add(self, name: str, tensor: Tensor, alias: Alias) -> str:
        """Add a tensor that the recording uses; why it cannot follow it, if it cannot."""
        memory = memory_of(tensor)
        if memory is None:
            return ""
        for other, written in self._written:
            if overlaps(written, memory):
                return f"it uses {name}, which shares memory with {other}, to which it writes"
        self._used.append((name, memory, alias))
        self._real[id(alias.storage)] = name, tensor
        return ""

    def refusal_of_write(self, alias: Alias) -> str:
        """Why a write to a tensor cannot be recorded; empty if it can."""
        if id(alias.storage) not in self._real:  # the call created it
            return ""
        name, real = self._real[id(alias.storage)]
        memory = memory_of(real)
        assert memory is not None
        for other, own, one in self._used:
            if one.storage is not alias.storage and overlaps(own, memory):
                return f"it writes to {name}, which shares memory with {other}"
        for other, own in self._arrays:
            if overlaps(own, memory):
                return f"it writes to {name}, which shares memory with {other}"
        # Torch marks a storage that was made from an array, or from which one was made: copies are read elsewhere here.
        if not real.untyped_storage().resizable():
            return f"it writes to {name}, whose memory an array may share"
        self._written.append((name, memory))
        return ""


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


def overlaps(first: Range, second: Range) -> bool:
    """True if two ranges have a byte in common."""
    return first[0] < second[1] and second[0] < first[1]


def overlaps_any(memory: Range | None, others: Iterable[Range]) -> bool:
    """True if a range has a byte in common with one of the others."""
    return memory is not None and any(overlaps(memory, other) for other in others)
