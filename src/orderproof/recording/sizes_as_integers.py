"""Functions of torch that take an integer where a model gives an open size: the same by operators that take sizes.

`one_hot(index, n)` and `x.unfold(dim, n, step)` have arguments that torch reads as numbers, which would fix the length
to that of the example. That both compute the same is compared with eager calls at several lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def with_open_sizes(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[..., Tensor] | None:
    """The function that computes the same with open sizes among its arguments; None if it is called with none."""
    function = _FUNCTIONS.get(name)
    is_open = any(isinstance(x, torch.SymInt) for x in (*args, *kwargs.values()))
    return function if is_open else None


def one_hot(tensor: Tensor, num_classes: Any) -> Tensor:
    """A one-hot encoding where no index is out of range, for which torch raises an error."""
    return (tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)).to(torch.int64)


def _unfold(x: Tensor, dimension: int, size: Any, step: Any) -> Tensor:
    """The windows of a dimension, as a new last dimension."""
    dim = dimension % x.dim()
    count = (x.shape[dim] - size) // step + 1
    first = torch.arange(count, device=x.device) * step
    windows = x.movedim(dim, -1)[..., first[:, None] + torch.arange(size, device=x.device)]
    return windows.movedim(-2, dim)


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {"one_hot": one_hot, "unfold": _unfold}
