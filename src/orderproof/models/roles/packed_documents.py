"""Packed inputs: the tokens of several documents one after the other, and inputs that say where documents are.

Boundaries (`cu_seqlens` of variable-length attention), lengths, the length of the longest document and grid sizes of
images are known by their values. A module that takes them has one row, which has two documents in the audit: the laws
of rows with documents apply.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd, isqrt, prod

import torch
from torch import Tensor

from orderproof.batch_layout import second_document_start
from orderproof.errors import SubjectError, UnsupportedCallError
from orderproof.models.input_sampling import ExampleInputs

INTEGERS = (torch.int32, torch.int64)
MIN_TOKENS = 2
_BOUNDARY_NAME = re.compile(r"cu_?seq_?len.*|cumulative_(seq_?)?len.*")
_LONGEST_NAME = re.compile(r"max_?(seq)?_?(len|s$|length).*")
_GRID_WIDTHS = (2, 3)  # height and width of an image, after the number of its frames


class DocumentInput:
    """An input that says where packed documents are."""

    def for_call(self, rows: int, tokens: int, device: torch.device) -> object:
        """The input of two documents in a number of tokens."""
        start = second_document_start(tokens)
        return self.for_documents((start, tokens - start), rows, device)

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> object:
        """The input of documents of these lengths, in each row. Raises `UnsupportedCallError`."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """A description of the input, for a report."""
        raise NotImplementedError


@dataclass(frozen=True)
class PackedDocuments(DocumentInput):
    """Where documents begin and end: boundaries [0, start, tokens], or the length of each document.

    Attributes:
        are_lengths: The lengths of documents, not their boundaries.
        dtype: The dtype of the tensor.

    """

    are_lengths: bool
    dtype: torch.dtype

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> Tensor:
        """The input of documents of these lengths."""
        values = torch.tensor(list(lengths) if self.are_lengths else [0, *lengths], dtype=self.dtype, device=device)
        return values if self.are_lengths else values.cumsum(0, dtype=self.dtype)

    @property
    def text(self) -> str:
        """A description of the input, for a report."""
        return f"{'lengths' if self.are_lengths else 'boundaries'} of packed documents"


@dataclass(frozen=True)
class LongestDocument(DocumentInput):
    """The length of the longest document, as a number or a tensor."""

    example: Tensor
    is_number: bool

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> object:
        """The input of documents of these lengths."""
        longest = max(lengths)
        return longest if self.is_number else torch.full_like(self.example, longest, device=device)

    @property
    def text(self) -> str:
        """A description of the input, for a report."""
        return "length of the longest packed document"


@dataclass(frozen=True)
class GridSizes(DocumentInput):
    """The grid of each packed image [image, 2 or 3]: frames, rows and columns, whose product is its number of tokens.

    Attributes:
        columns: 2 without frames, else 3.
        unit: What divides all numbers of rows and columns: patches may be merged in squares.
        dtype: The dtype of the tensor.

    """

    columns: int
    unit: int
    dtype: torch.dtype

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> Tensor:
        """The input of documents of these lengths."""
        grids = [self._grid(length) for length in lengths if length]
        return torch.tensor(grids, dtype=self.dtype, device=device)

    def _grid(self, tokens: int) -> list[int]:
        """The grid of an image, as square as its number of tokens allows, and wider than high."""
        squares, rest = divmod(tokens, self.unit**2)
        if rest:
            raise UnsupportedCallError(f"{tokens} tokens are no image of {self.unit} by {self.unit} patches each")
        height = next(h for h in range(isqrt(squares), 0, -1) if squares % h == 0)
        return [*[1] * (self.columns - 2), height * self.unit, squares // height * self.unit]

    @property
    def text(self) -> str:
        """A description of the input, for a report."""
        return "grid sizes of packed images"


def packed_documents(value: Tensor, tokens: int) -> PackedDocuments | GridSizes | None:
    """The documents that an input names, of inputs with this number of tokens; None if it names none."""
    if value.dtype not in INTEGERS or value.is_meta or not 1 <= value.ndim <= 2 or not value.numel():
        return None
    if value.ndim == 2:
        grids = value.tolist()
        if value.shape[1] not in _GRID_WIDTHS or value.min() < 1 or sum(map(prod, grids)) != tokens:
            return None
        unit = gcd(*(side for grid in grids for side in grid[-2:]))
        return GridSizes(value.shape[1], 2 if unit % 2 == 0 else 1, value.dtype)
    values = value.tolist()
    if len(values) > 1 and values[0] == 0 and values[-1] == tokens and values == sorted(values):
        return PackedDocuments(are_lengths=False, dtype=value.dtype)
    if len(values) > 1 and min(values) > 0 and sum(values) == tokens:
        return PackedDocuments(are_lengths=True, dtype=value.dtype)
    return None


def document_inputs(
    examples: ExampleInputs, names: Sequence[str], numbers: Collection[str]
) -> dict[int, DocumentInput]:
    """The inputs that say by their values where packed documents are, by place; none if the first input has rows.

    ``numbers`` are the names of inputs that are numbers and no tensors. Raises `SubjectError` for boundaries that do
    not fit the tokens.
    """
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    tensor, tokens = examples.tensors[first], examples.length
    one_row = examples.axes[first] == 0 or (examples.axes[first] == 1 and tensor.shape[0] == 1)
    if not one_row or tokens < MIN_TOKENS:
        return {}
    found: dict[int, DocumentInput] = {
        place: documents
        for place, each in enumerate(examples.tensors)
        if place != first and (documents := packed_documents(each, tokens)) is not None
    }
    _check_boundaries(examples, names, found)
    boundaries = next((x for x in found.values() if isinstance(x, PackedDocuments)), None)
    for place, (name, each) in enumerate(zip(names, examples.tensors, strict=True)):
        if boundaries is not None and is_longest_document(name) and each.dtype in INTEGERS and each.numel() == 1:
            found[place] = LongestDocument(each, name in numbers)
    return found


def is_longest_document(name: str) -> bool:
    """True for a common name of the length of the longest document."""
    return _LONGEST_NAME.fullmatch(name) is not None


def _check_boundaries(examples: ExampleInputs, names: Sequence[str], found: Collection[int]) -> None:
    """Raises `SubjectError` for an input with the name of boundaries whose values are none of any input's tokens."""
    sizes = {size for x in examples.tensors if x.ndim > 1 for size in x.shape[:2]} | {examples.length}
    for place, (name, value) in enumerate(zip(names, examples.tensors, strict=True)):
        if place in found or not _BOUNDARY_NAME.fullmatch(name) or value.ndim != 1 or value.dtype not in INTEGERS:
            continue
        values = value.tolist()
        if len(values) < MIN_TOKENS or values[0] != 0 or values[-1] not in sizes or values != sorted(values):
            shown = f"[{', '.join(map(str, values[:8]))}{', ...' if len(values) > 8 else ''}]"
            raise SubjectError(
                f"{examples.name}: expected input {name!r} to be boundaries of documents that count from 0 to the "
                f"{examples.length} tokens, none less than the one before; got {shown}"
            )


def token_axis_of_documents(tensors: Sequence[Tensor]) -> int | None:
    """Axis 0, if documents are packed along it: of ids [token] and of heads [token, head, width]; None otherwise.

    Boundaries end at the size of that axis, or other integers have its shape.
    """
    first = tensors[0]
    if first.ndim == 1 and any(x.shape == first.shape and x.dtype in INTEGERS for x in tensors[1:]):
        return 0  # ids with position ids or document ids
    ends = [
        values[-1] for x in tensors[1:] if x.ndim == 1 and x.dtype in INTEGERS and x.numel() > 1
        for values in [x.tolist()] if values[0] == 0 and values == sorted(values)
    ]  # fmt: skip
    if not first.ndim or first.shape[0] not in ends:
        return None
    usual = first.shape[1] if first.ndim > 1 + (first.ndim == 2 and first.is_floating_point()) else None
    return 0 if usual not in ends and (usual is not None or first.ndim == 1) else None
