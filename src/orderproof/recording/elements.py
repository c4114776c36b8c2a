"""The elements of tensors that share memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

MAX_COMPARED = 1 << 20  # elements of a tensor whose values or places are compared
Range = tuple[int, int]  # the place of the first byte, and of the one after the last


def overlaps(first: Range, second: Range) -> bool:
    """True if two ranges have a byte in common."""
    return first[0] < second[1] and second[0] < first[1]


def places(x: Tensor) -> Tensor:
    """The place of each element after the first one [bytes]."""
    found = torch.tensor([0])
    for size, stride in zip(x.shape, x.stride(), strict=True):
        found = (found[:, None] + torch.arange(size) * (stride * x.element_size())).reshape(-1)
    return found


def geometry(x: Tensor) -> tuple[Any, ...]:
    """Equal for two views of one storage that have the same elements in the same order."""
    return tuple(x.shape), tuple(x.stride()), x.storage_offset(), x.dtype, x.is_conj(), x.is_neg()


def views_meet(first: Tensor, second: Tensor) -> bool:
    """True if two views of one storage, whose sizes are numbers, have a common element; True if that is not plain."""
    if not first.numel() or not second.numel():
        return False
    one, other = _range(first), _range(second)
    if not overlaps(one, other):
        return False
    if first.element_size() != second.element_size() or max(first.numel(), second.numel()) > MAX_COMPARED:
        return True
    return bool(torch.isin(one[0] + places(first), other[0] + places(second)).any())


def goes_by_element(func: OpOverload) -> bool:
    """True if an operator computes each element from those at its place, so that it may write to what it reads."""
    return torch.Tag.pointwise in func.tags or func._schema.name == "aten::copy_"


def reads_what_it_writes(target: Tensor, other: Tensor, *, by_element: bool) -> bool:
    """True if the result of a write depends on the order in which the elements of two views of one storage are visited.

    The sizes of both are numbers.
    """
    return not (by_element and geometry(other) == geometry(target)) and views_meet(target, other)


def _range(x: Tensor) -> Range:
    """Between the first and the last element of a tensor, from the start of its storage on [bytes]."""
    last = sum(int(size - 1) * int(stride) for size, stride in zip(x.shape, x.stride(), strict=True))
    start = int(x.storage_offset())
    return start * x.element_size(), (start + last + 1) * x.element_size()
