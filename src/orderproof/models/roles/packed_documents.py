"""Packed inputs: the tokens of several documents one after the other, with boundaries or lengths of the documents.

A module of this kind takes vectors [token, width] or ids [token] and `cu_seqlens` [document + 1], as variable-length
attention does. It is audited as one row with two documents, so that the laws of rows with documents apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from orderproof.batch_layout import second_document_start
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.subject import Subject

INTEGERS = (torch.int32, torch.int64)


@dataclass(frozen=True)
class PackedDocuments:
    """Where documents begin and end: boundaries [0, start, tokens], or the length of each document.

    Attributes:
        are_lengths: The lengths of documents, not their boundaries.
        dtype: The dtype of the tensor.

    """

    are_lengths: bool
    dtype: torch.dtype

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """Two documents in a number of tokens."""
        del rows
        start = second_document_start(tokens)
        values = [start, tokens - start] if self.are_lengths else [0, start, tokens]
        return torch.tensor(values, dtype=self.dtype, device=device)

    @property
    def text(self) -> str:
        """A description of the input, for a note."""
        kind = "lengths" if self.are_lengths else "boundaries"
        return f"{kind} of packed documents, computed for each number of tokens: two documents"


def packed_documents(value: Tensor, tokens: int) -> PackedDocuments | None:
    """The documents that an input names, of inputs with this number of tokens; None if it names none."""
    if value.ndim != 1 or value.dtype not in INTEGERS or value.numel() < 2 or value.is_meta:
        return None
    values = value.tolist()
    if values[0] == 0 and values[-1] == tokens and values == sorted(values):
        return PackedDocuments(are_lengths=False, dtype=value.dtype)
    if min(values) > 0 and sum(values) == tokens:
        return PackedDocuments(are_lengths=True, dtype=value.dtype)
    return None


class OnePackedRow(nn.Module):
    """A module without rows, called with inputs and outputs that have one row."""

    def __init__(self, model: nn.Module, places: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        self.places = tuple(places)  # of the inputs with tokens

    def forward(self, *inputs: Tensor) -> Any:
        """Call the module. Raises `ValueError` for more than one row."""
        for place in self.places:
            if inputs[place].shape[0] != 1:
                raise ValueError(f"packed documents are one row; got {inputs[place].shape[0]}")
        given = [x[0] if place in self.places else x for place, x in enumerate(inputs)]
        return tree_map(lambda x: x.unsqueeze(0) if isinstance(x, Tensor) else x, self.model(*given))


def as_one_row(module: nn.Module, examples: ExampleInputs) -> tuple[nn.Module, ExampleInputs]:
    """The module and its inputs with a leading axis of one row."""
    places = [place for place, axis in enumerate(examples.axes) if axis is not None]
    tensors = tuple(x.unsqueeze(0) if k in places else x for k, x in enumerate(examples.tensors))
    axes = tuple(None if axis is None else axis + 1 for axis in examples.axes)
    return OnePackedRow(module, places), replace(examples, tensors=tensors, axes=axes)


def mark_packed(subject: Subject, documents: Mapping[int, PackedDocuments]) -> None:
    """Say of a subject that its row has two documents, and that the first axis of its outputs is that row."""
    subject.packs_documents = True
    axes = subject.output_axes or {}
    subject.output_axes = {
        name: replace(one, row=0, unknown_rows="") if one.tokens else one for name, one in axes.items()
    }
    subject.notes = (*subject.notes, *(f"input {place}: {one.text}" for place, one in documents.items()))
