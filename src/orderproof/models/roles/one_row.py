"""A module that takes packed documents and no rows, called as a module of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.roles.packed_documents import DocumentInput
from orderproof.models.subject import Subject


class OnePackedRow(PassesKeywordsOn):
    """A module whose inputs have one row: it has no axis of rows itself, or takes one row only.

    ``places``: the inputs with tokens that have no row in the module; ``first``: the input with tokens whose row is
    counted.
    """

    def __init__(self, model: torch.nn.Module, places: Sequence[int], first: int, count: int) -> None:
        super().__init__()
        self.model = model
        self.places = tuple(places)
        self.first = first
        self.count = count

    def _gives(self, name: str, place: int) -> bool:
        del name
        return not isinstance(self.model, PassesKeywordsOn) and place < self.count

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module. Raises `ValueError` for more than one row."""
        rows, tokens = inputs[self.first].shape[:2]
        if rows != 1:
            raise ValueError(f"packed documents are one row; got {rows}")
        if not self.places:
            return self.model(*inputs, **keywords)
        given = [x[0] if place in self.places else x for place, x in enumerate(inputs)]
        more = {
            name: x[0] if isinstance(x, Tensor) and x.shape[:2] == (1, tokens) else x for name, x in keywords.items()
        }
        return tree_map(lambda x: x.unsqueeze(0) if isinstance(x, Tensor) else x, self.model(*given, **more))


def as_one_row(module: torch.nn.Module, examples: ExampleInputs) -> tuple[OnePackedRow, ExampleInputs]:
    """The module and its inputs with a leading axis of one row, which those with tokens along axis 1 have already."""
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    places = [] if examples.axes[first] else [place for place, axis in enumerate(examples.axes) if axis == 0]
    tensors = tuple(x.unsqueeze(0) if k in places else x for k, x in enumerate(examples.tensors))
    axes = tuple(1 if k in places else axis for k, axis in enumerate(examples.axes))
    wrapped = OnePackedRow(module, places, first, len(tensors))
    return wrapped, replace(examples, tensors=tensors, axes=axes)


def may_be_one_row(examples: ExampleInputs) -> bool:
    """True for inputs without rows of which one may say where documents are: integers [token] besides the tokens."""
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    tensor = examples.tensors[first]
    if examples.axes[first] != 0 or tensor.ndim > 1 + tensor.is_floating_point():
        return False
    own = (examples.length,), (examples.length, examples.length)
    return any(tuple(x.shape) in own for k, x in enumerate(examples.tensors) if k != first)


def mark_one_row(subject: Subject, documents: Mapping[int, DocumentInput]) -> None:
    """Say of a subject that it has one row, which is the first axis of its outputs, with two documents if any given."""
    subject.single_row, subject.packs_documents = True, bool(documents)
    axes = subject.output_axes or {}
    subject.output_axes = {
        name: replace(one, row=0, unknown_rows="") if one.tokens else one for name, one in axes.items()
    }
    subject.axes_text = {**subject.axes_text, **{name: one.text for name, one in subject.output_axes.items()}}
    subject.notes = (
        *subject.notes,
        *(f"input {place}: {one.text}, computed for each number of tokens: two documents"
          for place, one in documents.items()),
    )  # fmt: skip
