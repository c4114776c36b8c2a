"""Values while an ONNX graph runs: tensors of torch, and numbers that are known outside them.

ONNX computes shapes with the operators that compute data: `Shape`, `Gather`, `Concat`, `Reshape`. Sizes stay numbers of
Python here, in arrays of objects, so that a call with open sizes keeps them and no tensor has to be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orderproof.errors import SubjectError

Numbers: TypeAlias = NDArray[Any]  # of dtype object
Value: TypeAlias = Tensor | Numbers  # or a `TensorList`, which only the operators of sequences take


class TensorList(tuple[Any, ...]):
    """A sequence of ONNX, of tensors or numbers."""


def numbers(values: Any) -> Numbers:
    """An array of numbers from a number or nested lists."""
    if isinstance(values, list | tuple):
        found = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):  # numpy asks the values of a list for their sizes, and fixes open ones
            found[place] = value
        return found
    found = np.empty((), dtype=object)
    found[()] = values
    return found


def array_of(found: Any) -> Numbers:
    """The array that numpy makes of numbers, which is the number itself where it has no axes."""
    return found if isinstance(found, np.ndarray) else numbers(found)


def are_numbers(*values: Value | None) -> bool:
    """True if no value is a tensor."""
    return all(isinstance(value, np.ndarray) for value in values)


def each(function: Callable[..., Any], *arrays: Numbers) -> Numbers:
    """A function of numbers at each place of arrays, which are broadcast."""
    placed = np.broadcast_arrays(*arrays)
    found = np.empty(placed[0].shape, dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = function(*(array[place] for array in placed))
    return found


def as_tensor(value: Value) -> Tensor:
    """A value as a tensor: integers as int64, which is the type of shapes. Raises `SubjectError` for a sequence."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, TensorList):
        raise SubjectError(f"expected a tensor; got a sequence of {len(value)} of them")
    if all(type(x) in (int, float, bool) for x in value.flat):
        return torch.tensor(value.tolist()) if value.size else torch.empty(value.shape, dtype=torch.int64)
    return torch.stack([torch.full((), x) for x in value.flat]).reshape(value.shape)


def as_operands(*values: Value) -> list[Any]:
    """Tensors, and numbers for values of one entry; both have the dtype of the tensors."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    rank = max((value.ndim for value in tensors), default=-1)
    return [
        value if isinstance(value, Tensor)
        else value.item() if value.size == 1 and value.ndim <= rank
        else as_tensor(value).to(tensors[0].dtype) if tensors
        else as_tensor(value)
        for value in values
    ]  # fmt: skip


def integers(value: Value | None) -> list[Any]:
    """The integers of a value, which is a shape, a list of axes or of sizes."""
    if value is None:
        return []
    if isinstance(value, Tensor):
        return value.reshape(-1).tolist()
    return list(value.flat)
