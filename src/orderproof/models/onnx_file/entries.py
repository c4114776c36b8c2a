"""The inputs of an ONNX file: their names, types and sizes, and how examples of them are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
import torch
from onnx import ModelProto

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import input_entries
from orderproof.models.onnx_file.operators.elementwise import DTYPES

Size = int | str
FLAG = "use_cache_branch"  # of decoders that optimum merges: a call has a cache


@dataclass(frozen=True)
class Entry:
    """One input: its name, dtype and sizes, a name for an open one; and how it is made: drawn, or computed."""

    name: str
    dtype: torch.dtype
    sizes: tuple[Size, ...]
    kind: str  # "drawn", "ones", "zeros", "positions" or "flag"


def entries_of(model: ModelProto, name: str) -> list[Entry]:
    """The inputs of a file. Raises `SubjectError` for a type of numbers that is not supported."""
    found = []
    for key, number, sizes in input_entries(model):
        dtype = DTYPES.get(onnx.TensorProto.DataType.Name(number))
        if dtype is None:
            kind = onnx.TensorProto.DataType.Name(number)
            raise SubjectError(f"{name}: input {key!r} has numbers of type {kind}, which is not supported")
        found.append(Entry(key, dtype, tuple(sizes), _kind(key.lower(), dtype, sizes)))
    return found


def is_past(size: Size) -> bool:
    """True for the name of the number of tokens in a cache."""
    return isinstance(size, str) and "past" in size.lower() and "+" not in size


def is_row_name(size: Size) -> bool:
    """True for the name of the number of rows."""
    return isinstance(size, str) and "batch" in size.lower()


def _kind(name: str, dtype: torch.dtype, sizes: Sequence[Size]) -> str:
    if name == FLAG:
        return "flag"
    if "mask" in name or dtype is torch.bool:
        return "ones"
    if "position" in name and not dtype.is_floating_point:
        return "positions"
    cache = "past" in name or any(map(is_past, sizes))
    return "zeros" if cache or "token_type" in name or "segment" in name else "drawn"
