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

from orderproof.signals import interrupts_delayed

_BITS = {  # the sign and the lowest bit of the exponent, as an integer of as many bytes
    torch.float64: (torch.int64, -0x7FF0000000000000),
    torch.float32: (torch.int32, -0x7F800000),
    torch.float16: (torch.int16, -0x7C00),
    torch.bfloat16: (torch.int16, -0x7F80),
}


@contextmanager
def other_weights(parameters: Iterable[Tensor]) -> Iterator[None]:
    """A block in which each weight has the other sign, and twice or half its size.

    The memory itself is changed, as what shares it reads no other one, and bit by bit, so that it can be changed back.
    Memory that is read-only, that is a file, or that other processes have too is left as it is.
    """
    weights = _Weights(parameters)
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
    """The memory of parameters, once each.

    Attributes:
        flipped: The signs and the lowest bits of the exponents are not their own.

    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.flipped = False
        self._memory: dict[int, tuple[Tensor, int]] = {}
        self._private: list[tuple[int, int]] | None = None  # ranges of memory
        for x in parameters:
            storage = x.untyped_storage()
            known = storage._cdata in self._memory
            if not known and x.device.type == "cpu" and x.dtype in _BITS and self._is_own(storage):
                kind, bits = _BITS[x.dtype]
                self._memory[storage._cdata] = torch.empty(0, dtype=kind).set_(storage), bits

    def _is_own(self, storage: torch.UntypedStorage) -> bool:
        """True of memory that only this process has, that it may write, and that is no file."""
        if storage.is_shared():
            return False
        if storage.resizable():  # torch allocated it, and no array was made from it
            return True
        if self._private is None:
            self._private = list(_private_memory())
        first, last = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        return any(start <= first and last <= end for start, end in self._private)

    def flip(self) -> None:
        """Flip the bits of all parameters, or none."""
        with interrupts_delayed():
            for x, bits in self._memory.values():
                x.bitwise_xor_(bits)
            self.flipped = not self.flipped


def _private_memory() -> Iterator[tuple[int, int]]:
    """The private ranges of memory that can be written and are no file; none where the system does not list them."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    ranges: list[tuple[int, int]] = []
    for line in lines:
        places, access, _offset, _device, _inode, *path = line.split()
        start, end = (int(place, 16) for place in places.split("-"))
        if not access.startswith("rw") or not access.endswith("p") or (path and path[0].startswith("/")):
            continue
        if ranges and ranges[-1][1] == start:  # they adjoin
            start = ranges.pop()[0]
        ranges.append((start, end))
    yield from ranges
