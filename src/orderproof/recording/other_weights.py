"""Other weights for a call, to see whether it computes with their numbers.

A claim for every weight is false of a model that decides by the numbers of its weights. It may read them where no walk
finds what it reads with: an array over the memory of a parameter that a context variable holds, an object with an
`__array_interface__`, a pointer. Whatever the way, its code then executes other instructions with other weights, or an
instruction has another result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from orderproof.recording.elements import Range
from orderproof.recording.memory import storage_of
from orderproof.signals import interrupts_delayed

_FLOATS = {  # an integer of as many bytes, and the bits of the mantissa
    torch.float64: (torch.int64, 52), torch.complex128: (torch.int64, 52),
    torch.float32: (torch.int32, 23), torch.complex64: (torch.int32, 23),
    torch.float16: (torch.int16, 10), torch.bfloat16: (torch.int16, 7),
    torch.float8_e4m3fn: (torch.uint8, 3), torch.float8_e5m2: (torch.uint8, 2),
}  # fmt: skip
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@contextmanager
def other_weights(parameters: Iterable[Tensor], *, mildly: bool = False) -> Iterator[None]:
    """A block in which each weight is another number: of the other sign and another size, or, if ``mildly``, near it.

    The memory itself is changed, as what shares it reads no other one, and bit by bit, so that it can be changed back.
    Memory that is read-only, that is a file, or that other processes have too is left as it is.
    """
    weights = _Weights(parameters, mildly=mildly)
    try:
        weights.flip()
        yield
    finally:
        if weights.flipped:
            try:
                weights.flip()
            except BaseException:
                if weights.flipped:  # a signal came before signals were delayed
                    weights.flip()
                raise


class _Weights:
    """The memory of parameters, each byte of it once.

    Attributes:
        flipped: Some bits of each number are not its own.

    """

    def __init__(self, parameters: Iterable[Tensor], *, mildly: bool) -> None:
        self.flipped = False
        self._memory: list[tuple[Tensor, int]] = []
        self._private: list[Range] | None = None
        places = [(memory, x) for x in parameters if (memory := storage_of(x)) is not None]
        end = 0
        # Of storages that overlap the first one, and of those that begin with it the longest.
        for memory, x in sorted(places, key=lambda place: (place[0][0], -place[0][1])):
            changeable = x.device.type == "cpu" and (x.dtype in _FLOATS or x.dtype in _INTEGERS)
            if memory[0] >= end and changeable and self._is_own(x, memory):
                kind, bits = _flipped_bits(x.dtype, mildly=mildly)
                self._memory.append((torch.empty(0, dtype=kind).set_(x.untyped_storage()), bits))
                end = memory[1]

    def _is_own(self, x: Tensor, memory: Range) -> bool:
        """True of memory that only this process has, that it may write, and that is no file."""
        storage = x.untyped_storage()
        if storage.is_shared():
            return False
        if storage.resizable():  # torch allocated it, and no array was made from it
            return True
        if self._private is None:
            self._private = _private_memory()
        return any(start <= memory[0] and memory[1] <= end for start, end in self._private)

    def flip(self) -> None:
        """Flip bits of all parameters, or none."""
        with interrupts_delayed():
            for x, bits in self._memory:
                x.bitwise_xor_(bits)
            self.flipped = not self.flipped


def _flipped_bits(dtype: torch.dtype, *, mildly: bool) -> tuple[torch.dtype, int]:
    """An integer dtype, and which of its bits are flipped.

    Of an integer the lowest one; of a floating-point number every second one of the mantissa, and the sign and the
    lowest one of the exponent.
    """
    if dtype in _INTEGERS:
        return dtype, 1
    kind, mantissa = _FLOATS[dtype]
    bits = sum(1 << place for place in range(1, mantissa, 2))
    limits = torch.iinfo(kind)
    if not mildly:
        bits |= 1 << mantissa | 1 << (limits.bits - 1)
    return kind, bits if bits <= limits.max else bits - (1 << limits.bits)


def _private_memory() -> list[Range]:
    """The private ranges of memory that can be written and are no file; none where the system does not list them."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    ranges: list[Range] = []
    for line in lines:
        places, access, _offset, _device, _inode, *path = line.split()
        start, end = (int(place, 16) for place in places.split("-"))
        if not access.startswith("rw") or not access.endswith("p") or (path and path[0].startswith("/")):
            continue
        if ranges and ranges[-1][1] == start:  # they adjoin
            start = ranges.pop()[0]
        ranges.append((start, end))
    return ranges
