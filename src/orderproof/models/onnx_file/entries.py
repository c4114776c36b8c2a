"""The inputs of an ONNX file: their names, types and sizes, and how examples of them are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx
import torch
from onnx import GraphProto, ModelProto, numpy_helper
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import input_entries
from orderproof.models.onnx_file.operators.elementwise import DTYPES
from orderproof.models.onnx_file.stored import constant_of
from orderproof.models.onnx_file.tables import id_bound

Size = int | str
FLAG = "use_cache_branch"  # of decoders that optimum merges: a call has a cache


MOST_NUMBERS = 1 << 30  # in an example input


@dataclass(frozen=True)
class Entry:
    """One input: its name, dtype and sizes, a name for an open one; and how it is made: drawn, or computed."""

    name: str
    dtype: torch.dtype
    sizes: tuple[Size, ...]
    kind: str  # "drawn", "ones", "zeros", "positions", "flag" or "number"
    number: int = 0  # the value of a number
    table: int | None = None  # the rows of the smallest table that reads it as ids

    @property
    def drawn_dtype(self) -> torch.dtype:
        """The dtype of its examples: ids are integers, also where the file takes real numbers."""
        return torch.int64 if self.table is not None and self.dtype.is_floating_point else self.dtype


def entries_of(model: ModelProto, name: str) -> list[Entry]:
    """The inputs of a file. Raises `SubjectError` for a type of numbers that is not supported."""
    found = []
    for key, number, sizes in input_entries(model):
        dtype = DTYPES.get(onnx.TensorProto.DataType.Name(number))
        if dtype is None:
            what = f"numbers of type {onnx.TensorProto.DataType.Name(number)}" if number else "a sequence, or no type"
            raise SubjectError(f"{name}: input {key!r} has {what}, which is not supported")
        if any(isinstance(size, int) and size < 0 for size in sizes) or math.prod(_least(sizes)) > MOST_NUMBERS:
            raise SubjectError(f"{name}: input {key!r} has the shape {list(sizes)}, which no example can have")
        kind = _kind(key.lower(), dtype, sizes)
        table = id_bound(model.graph, key) if kind == "drawn" else None
        found.append(Entry(key, dtype, tuple(sizes), kind, table=table))
    return found


def _least(sizes: Sequence[Size]) -> list[int]:
    return [size if isinstance(size, int) else 1 for size in sizes]


def with_numbers(entries: Sequence[Entry], graph: GraphProto, given: dict[str, Tensor]) -> list[Entry]:
    """The entries with the values of single numbers, which are taken out of those given.

    One that is not given has the value with which the graph compares it: a sample rate, a mode.
    """
    stored = {x.name: numpy_helper.to_array(x) for x in graph.initializer if not x.dims}
    for node in graph.node:
        if node.op_type == "Constant" and any(a.name == "value" and not a.t.dims for a in node.attribute):
            stored[node.output[0]] = constant_of(node).numpy()
    compared = {
        node.input[k]: int(stored[node.input[1 - k]])
        for node in graph.node
        for k in (0, 1)
        if node.op_type == "Equal" and node.input[1 - k] in stored
    }
    return [
        replace(entry, number=int(given.pop(entry.name)) if entry.name in given else compared.get(entry.name, 0))
        if entry.kind == "number"
        else entry
        for entry in entries
    ]


def is_past(size: Size) -> bool:
    """True for the name of the number of tokens in a cache."""
    return isinstance(size, str) and "past" in size.lower() and "+" not in size


def is_row_name(size: Size) -> bool:
    """True for the name of the number of rows."""
    return isinstance(size, str) and "batch" in size.lower()


def _kind(name: str, dtype: torch.dtype, sizes: Sequence[Size]) -> str:
    if name == FLAG:
        return "flag"
    if not sizes and dtype in (torch.int32, torch.int64):
        return "number"
    if "mask" in name or dtype is torch.bool:
        return "ones"
    if "position" in name and not dtype.is_floating_point:
        return "positions"
    cache = "past" in name or any(map(is_past, sizes))
    return "zeros" if cache or "token_type" in name or "segment" in name else "drawn"
