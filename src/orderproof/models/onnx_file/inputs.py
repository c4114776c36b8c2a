"""Example inputs of an ONNX file: as they are given, or drawn from their types, shapes and names.

Masks are ones and position ids count from zero; calls decide whether they are what their names say, as of every module.
Types of tokens are zero, and a cache has no tokens; these are computed for each number of tokens. Everything else is
drawn: numbers, or ids below the size of the table that they read. Sizes that the file fixes stay fixed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.onnx_file.cache import FileCache
from orderproof.models.onnx_file.entries import Entry, is_past, is_row_name
from orderproof.models.onnx_file.module import OnnxModule
from orderproof.models.onnx_file.sizes import size_of
from orderproof.models.onnx_file.tables import NO_TABLE
from orderproof.models.onnx_file.values import Value, numbers


class WithComputedInputs(PassesKeywordsOn):
    """A graph called with its inputs by their names; those that are not given are computed from their sizes.

    The inputs that take a cache are one argument, and the outputs that give it back one entry of its outputs.
    """

    of_one_mode = True

    def __init__(self, graph: OnnxModule, entries: Sequence[Entry], cache: FileCache | None = None) -> None:
        super().__init__()
        self.model, self.entries, self.cache = graph, tuple(entries), cache

    def free_arguments(self) -> dict[str, inspect.Parameter]:
        """The cache: the other inputs of a file are given, and it takes no more."""
        if self.cache is None:
            return {}
        return {self.cache.name: inspect.Parameter(self.cache.name, inspect.Parameter.KEYWORD_ONLY, default=None)}

    def _gives(self, name: str, place: int) -> bool:
        del place
        return self.cache is None or name != self.cache.name

    def forward(self, **inputs: Any) -> dict[str, Any]:
        """The outputs by name; the inputs have the names of the file."""
        cache = self.cache
        past: Mapping[str, Tensor] | None = None if cache is None else inputs.pop(cache.name, None)
        if past is not None and not isinstance(past, Mapping):
            raise UnsupportedCallError(
                f"expected the cache that a call of the file returned, a mapping; got {type(past).__name__}"
            )
        cached = 0 if cache is None or past is None else cache.tokens(self.entries, past)
        known = {str(size): cached for entry in self.entries for size in entry.sizes if is_past(size)}
        rows, row_axis = 1, 0 if cache is None else cache.row_axis
        for entry in self.entries[::-1]:
            if entry.name in inputs:
                shape = inputs[entry.name].shape
                known |= {size: n for size, n in zip(entry.sizes, shape, strict=True) if isinstance(size, str)}
                rows = shape[row_axis] if len(shape) > max(row_axis, 1) else rows
        rows = next((n for size, n in known.items() if is_row_name(size)), rows)
        values: list[Value] = []
        for entry in self.entries:
            if entry.name in inputs:
                values.append(inputs[entry.name].to(entry.dtype) if entry.table is not None else inputs[entry.name])
            elif cache is not None and entry.name in cache.outputs:
                values.append(cache.empty(entry, rows) if past is None else past[cache.outputs[entry.name]])
            else:
                values.append(computed_value(entry, known, cached))
        found: dict[str, Any] = self.model(*values)
        if cache is None:
            return found
        kept = {name: found[name] for name in cache.outputs.values()}
        return {**{name: x for name, x in found.items() if name not in kept}, cache.name: kept}

    def on_cache(self, examples: Mapping[str, Tensor], tokens: str | int | None) -> None:
        """Call the graph with the drawn inputs, and with one more token on the cache of that call.

        ``tokens`` is the name of the number of tokens, where the file leaves it open.
        """
        assert self.cache is not None
        whole, last = {}, {}
        for entry in self.entries:
            if entry.kind == "drawn" and entry.name in examples:
                whole[entry.name] = last[entry.name] = examples[entry.name]
                for axis in (k for k, size in enumerate(entry.sizes) if size == tokens and isinstance(size, str)):
                    last[entry.name] = last[entry.name].narrow(axis, 0, 1)
        kept = {self.cache.name: self(**whole)[self.cache.name]}
        for given in (last, whole):  # one token may be too few, as of a window of samples
            try:
                self(**given, **kept)
            except Exception:  # noqa: BLE001 - the graph may refuse a call in any way
                continue
            return


def computed_value(entry: Entry, known: Mapping[str, int], cached: int = 0) -> Value:
    """The value of an input that follows from the sizes of others and the number of tokens in a cache."""
    if entry.kind == "flag":  # a number, so that it decides a branch
        return numbers([cached > 0] if entry.sizes else cached > 0)
    if entry.kind == "number":
        return numbers(entry.number)
    tokens = _tokens(known)
    other = tokens + cached if entry.kind == "ones" and tokens is not None else tokens
    sizes = [size_of(size, known, other) for size in entry.sizes]
    if entry.kind == "positions":
        return torch.arange(cached, cached + sizes[-1], dtype=entry.dtype).expand(sizes).clone()
    return torch.full(sizes, 1 if entry.kind == "ones" else 0, dtype=entry.dtype)


def _tokens(known: Mapping[str, int]) -> int | None:
    """The number of tokens in the sizes of a call; None if they have several."""
    of_all = ("batch", "past", "total")  # names of sizes that are not the tokens of the call
    left = [n for name, n in known.items() if not any(word in name.lower() for word in of_all)]
    return left[0] if left and all(n == left[0] for n in left) else None  # an open size has no hash


def example_inputs(
    entries: Sequence[Entry], given: Mapping[str, Tensor], sizes: Mapping[str, int]
) -> dict[str, Tensor]:
    """Example values by name, but for inputs of zeros that are not given, which follow from the others."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    for entry in entries:
        if entry.name in given:
            found[entry.name] = given[entry.name]
        elif entry.kind in ("ones", "positions"):
            value = computed_value(entry, sizes)
            assert isinstance(value, Tensor)
            found[entry.name] = value
        elif entry.kind == "drawn":
            shape = [size_of(size, sizes, None) for size in entry.sizes]
            if entry.drawn_dtype.is_floating_point:
                drawn = torch.randn(shape, generator=generator)
            else:
                drawn = torch.randint(NO_TABLE if entry.table is None else entry.table, shape, generator=generator)
            found[entry.name] = drawn.to(entry.drawn_dtype)
    return found
