"""Example inputs of an ONNX file: as they are given, or drawn from their types, shapes and names.

Masks are ones and position ids count from zero; calls decide whether they are what their names say, as of every module.
Types of tokens are zero, and a cache has no tokens; these are computed for each number of tokens. Everything else is
drawn: numbers, or ids below the size of the table that they read. Sizes that the file fixes stay fixed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import torch
from onnx import ModelProto
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.onnx_file.module import OnnxModule, input_entries
from orderproof.models.onnx_file.operators.elementwise import DTYPES
from orderproof.models.onnx_file.sizes import Size, size_of
from orderproof.models.onnx_file.tables import id_bound


@dataclass(frozen=True)
class Entry:
    """One input: its name, dtype and sizes, a name for an open one; and how it is made: drawn, or computed."""

    name: str
    dtype: torch.dtype
    sizes: tuple[Size, ...]
    kind: str  # "drawn", "ones", "zeros" or "positions"


class WithComputedInputs(PassesKeywordsOn):
    """A graph called with its inputs by their names; those that are not given are computed from their sizes."""

    def __init__(self, graph: OnnxModule, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.model, self.entries = graph, tuple(entries)

    def free_arguments(self) -> dict[str, inspect.Parameter]:
        """None: the inputs of a file are all that it takes."""
        return {}

    def _gives(self, name: str, place: int) -> bool:
        del name, place
        return True

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """The outputs by name; the inputs have the names of the file."""
        known: dict[str, int] = {}
        for entry in self.entries:
            if entry.name in inputs:
                shape = inputs[entry.name].shape
                known |= {size: n for size, n in zip(entry.sizes, shape, strict=True) if isinstance(size, str)}
        return self.model(  # type: ignore[no-any-return]
            *(inputs[e.name] if e.name in inputs else _example(e, known) for e in self.entries)
        )


def _example(entry: Entry, known: Mapping[str, int]) -> Tensor:
    sizes = [size_of(size, known) for size in entry.sizes]
    if entry.kind == "positions":
        return torch.arange(sizes[-1], dtype=entry.dtype).expand(sizes).clone()
    return torch.full(sizes, 1 if entry.kind == "ones" else 0, dtype=entry.dtype)


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


def _kind(name: str, dtype: torch.dtype, sizes: Sequence[Size]) -> str:
    if "mask" in name or dtype is torch.bool:
        return "ones"
    if "position" in name and not dtype.is_floating_point:
        return "positions"
    cache = "past" in name or any(isinstance(size, str) and "past" in size.lower() for size in sizes)
    return "zeros" if cache or "token_type" in name or "segment" in name else "drawn"


def example_inputs(
    model: ModelProto, entries: Sequence[Entry], given: Mapping[str, Tensor], sizes: Mapping[str, int]
) -> dict[str, Tensor]:
    """Example values by name, but for inputs of zeros that are not given, which follow from the others."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    for entry in entries:
        shape = [size_of(size, sizes) for size in entry.sizes]
        if entry.name in given:
            found[entry.name] = given[entry.name]
        elif entry.kind in ("ones", "positions"):
            found[entry.name] = _example(entry, sizes)
        elif entry.kind == "drawn" and entry.dtype.is_floating_point:
            found[entry.name] = torch.randn(shape, generator=generator).to(entry.dtype)
        elif entry.kind == "drawn":
            drawn = torch.randint(id_bound(model.graph, entry.name), shape, generator=generator)
            found[entry.name] = drawn.to(entry.dtype)
    return found
