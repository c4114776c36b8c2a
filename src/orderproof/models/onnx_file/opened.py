"""An ONNX file as a module with example inputs: what is given of them, and what is drawn, computed or a cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from onnx import ModelProto
from torch import Tensor

from orderproof.errors import SubjectError, UsageError
from orderproof.models.onnx_file import sizes
from orderproof.models.onnx_file.cache import file_cache, find_sizes
from orderproof.models.onnx_file.entries import entries_of, with_numbers
from orderproof.models.onnx_file.inputs import WithComputedInputs, example_inputs
from orderproof.models.onnx_file.module import OnnxModule
from orderproof.models.plain_module import Inputs
from orderproof.subject_spec import Layout


class OpenedFile:
    """A file, the module of its graph and its example inputs.

    Attributes:
        graph: The graph, called with all inputs.
        module: The graph called with the drawn inputs, and the cache as one argument.
        cache: The cache, if outputs give inputs back.
        examples: The example inputs by name.
        length: The length to audit at, if it is stated [tokens].
        tokens: The size of the axis of tokens: a number, or a name if the file leaves it open.

    """

    def __init__(self, model: ModelProto, name: str, inputs: Inputs | None, layout: Layout, length: int | None) -> None:
        """Raise `SubjectError` for what the file has and `UsageError` for what is stated and does not fit it."""
        self.graph = OnnxModule(model, name).eval()
        entries = entries_of(model, name)
        self.given = sizes.check_given(_by_name(inputs, self.graph), entries, name)
        entries = with_numbers(entries, model.graph, self.given)
        shapes = {**layout.shapes, **{key: tuple(x.shape) for key, x in self.given.items()}}
        self.sizes = sizes.example_sizes(entries, shapes, length, layout, name)
        self.cache = file_cache([entry for entry in entries if entry.name not in self.given], self.graph.output_names)
        self.entries = [entry for entry in entries if self.cache is None or entry.name not in self.cache.outputs]
        self.examples = self.examples_of()
        if not self.examples:
            raise SubjectError(f"{name}: no input is drawn; give inputs=")
        if length is not None:
            sizes.check_length(length, entries, self.examples, layout, name)
        elif layout.shapes:
            length = sizes.stated_length(entries, layout.shapes, layout, name)
        self.length = length
        self.module = WithComputedInputs(self.graph, entries, self.cache)
        if (cache := self.cache) is not None:
            find_sizes(cache, entries, self.examples, lambda: self.module(**self.examples)[cache.name])
        drawn = [entry for entry in self.entries if entry.kind == "drawn"]
        place = sizes.token_axis(drawn, self.examples, layout, name)
        self.tokens = None if place is None else place[0].sizes[place[1]]

    @property
    def rows(self) -> str | None:
        """The size of the axis of rows, if the file leaves it open."""
        names = (size for entry in self.entries for size in entry.sizes[:1] if isinstance(size, str))
        return next((name for name in names if name != self.tokens and name in self.sizes), None)

    def examples_of(self, **other: int) -> dict[str, Tensor]:
        """Example inputs, also with other sizes by the names that the file has for them."""
        return example_inputs(self.entries, self.given, {**self.sizes, **other})

    @property
    def notes(self) -> list[str]:
        """The inputs that are computed, and what counts as weights."""
        missing = [entry for entry in self.entries if entry.name not in self.examples]
        computed = [f"{entry.name} ({entry.number if entry.kind == 'number' else entry.kind})" for entry in missing]
        weights = (
            f"{self.graph.weight_count} tensors of the file count as weights; numbers, masks and triangles among its "
            "tensors keep their values"
        )
        return [*([f"computed for each number of tokens: {', '.join(computed)}"] if computed else []), weights]


def _by_name(inputs: Inputs | None, graph: OnnxModule) -> dict[str, Tensor]:
    """Example inputs by the names of the graph. Raises `UsageError` for too many."""
    if isinstance(inputs, Mapping):
        named: dict[str, Any] = dict(inputs)
    else:
        values = () if inputs is None else (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if len(values) > len(graph.input_names):
            raise UsageError(f"expected inputs for {', '.join(graph.input_names)}; got {len(values)} of them")
        named = dict(zip(graph.input_names, values, strict=False))
    return {key: x if isinstance(x, Tensor) else torch.from_numpy(np.asarray(x)) for key, x in named.items()}
