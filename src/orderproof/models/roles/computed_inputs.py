"""Inputs of a module that follow from the numbers of rows and tokens: a mask without pads, position ids, documents.

They are no inputs of the audited graph. A law that speaks of one gives it by its name instead.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.input_sampling import ExampleInputs


class ComputedInput(Protocol):
    """An input that follows from the size of the call."""

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Any:
        """The input for these numbers of rows and tokens."""


class ComputedInputs(PassesKeywordsOn):
    """A module some of whose inputs are computed; a keyword argument with the name of one replaces it."""

    def __init__(
        self,
        model: nn.Module,
        computed: Mapping[int, ComputedInput],
        examples: ExampleInputs,
        names: Mapping[str, Collection[int]],
    ) -> None:
        """Compute some of the inputs in `examples`, which are all inputs of the module.

        ``names``: by the name of an argument, its places among the inputs: several for a mask that is given twice.
        """
        super().__init__()
        self.model = model
        self.computed = dict(computed)
        self.count = len(examples.tensors)
        self.names = {name: places for name, places in names.items() if all(k in self.computed for k in places)}
        kept = [place for place in range(self.count) if place not in self.computed]
        first = next(place for place in kept if examples.axes[place] is not None)
        axis = examples.axes[first]
        assert axis is not None
        self.tokens = (kept.index(first), axis)  # the given input and its axis that has tokens
        self.row_axis = (1 if axis == 0 else 0) if examples.tensors[first].dim() > 1 else None

    def _gives(self, name: str, place: int) -> bool:
        del name
        return not isinstance(self.model, PassesKeywordsOn) and place < self.count

    def takes(self, name: str) -> bool:
        """True if a keyword argument of this name replaces a computed input."""
        return name in self.names

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module with its inputs and the computed ones."""
        place, axis = self.tokens
        shape, device = inputs[place].shape, inputs[place].device
        rows = 1 if self.row_axis is None else shape[self.row_axis]
        given = {name: keywords.pop(name) for name in list(keywords) if name in self.names}
        replaced = {place: value for name, value in given.items() for place in self.names[name]}
        return self.model(*self._arguments(iter(inputs), replaced, (rows, shape[axis]), device), **keywords)

    def _arguments(
        self, given: Iterator[Tensor], replaced: Mapping[int, Any], size: tuple[int, int], device: torch.device
    ) -> Iterator[Any]:
        for place in range(self.count):
            if place in replaced:
                yield replaced[place]
            elif place in self.computed:
                yield self.computed[place].for_call(*size, device)
            else:
                yield next(given)


@dataclass(frozen=True)
class OfLength:
    """An input that follows from the number of rows, for a sequence whose length is held.

    Attributes:
        computed: The input.
        tokens: The length.

    """

    computed: ComputedInput
    tokens: int

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Any:
        """The input for a number of rows."""
        del tokens
        return self.computed.for_call(rows, self.tokens, device)


def without_inputs(examples: ExampleInputs, places: Mapping[int, object]) -> ExampleInputs:
    """The examples without the inputs at these places."""
    kept = [place for place in range(len(examples.tensors)) if place not in places]
    tensors, axes = tuple(examples.tensors[k] for k in kept), tuple(examples.axes[k] for k in kept)
    return ExampleInputs(tensors, axes, examples.name)


@dataclass(frozen=True)
class KeptNumber:
    """A number that is the same in every call."""

    number: int

    def for_call(self, rows: int, tokens: int, device: torch.device) -> int:
        """The number."""
        del rows, tokens, device
        return self.number


@dataclass(frozen=True)
class TriangularMask:
    """A mask [..., token, token] with one value up to a diagonal and another after it, or the same.

    Attributes:
        diagonal: The last key with the first value is `query + diagonal`.
        first: The value up to the diagonal.
        second: The value after it.
        dtype: Its dtype.
        leading: The number of axes of size 1 before the last two.

    """

    diagonal: int
    first: float
    second: float
    dtype: torch.dtype
    leading: int

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The mask for a number of tokens."""
        del rows
        index = torch.arange(tokens, device=device)
        seen = index <= index.unsqueeze(-1) + self.diagonal
        if self.first == self.second:
            mask = torch.full((tokens, tokens), self.first, device=device).to(self.dtype)
        elif self.dtype is torch.bool:
            mask = seen if self.first else ~seen
        else:
            mask = torch.where(seen, self.first, self.second).to(self.dtype)
        return mask[(None,) * self.leading]

    @property
    def text(self) -> str:
        """The mask in a few words."""
        return "triangular mask" if self.first != self.second else "square mask of one value"


def square_mask(value: Tensor, tokens: int) -> TriangularMask | None:
    """The triangular mask, or the one of a single value, of which this is that for a number of tokens; None if none."""
    shape = tuple(value.shape)
    if len(shape) < 2 or tokens < 2 or shape != (1,) * (len(shape) - 2) + (tokens, tokens):
        return None
    square = value.detach().reshape(tokens, tokens)
    for diagonal in (0, -1, 1):
        if tokens <= diagonal + 1:
            continue
        mask = TriangularMask(diagonal, float(square[-1, 0]), float(square[0, -1]), value.dtype, len(shape) - 2)
        if torch.equal(mask.for_call(1, tokens, value.device), value.detach()):
            return mask
    return None


def square_masks(examples: ExampleInputs, known: Container[int] = ()) -> dict[int, ComputedInput]:
    """The square masks among the inputs without an axis of tokens, by place; those at `known` places are left out."""
    pairs = enumerate(zip(examples.tensors, examples.axes, strict=True))
    free = ((place, x) for place, (x, axis) in pairs if axis is None and place not in known)
    masks = ((place, square_mask(x, examples.length)) for place, x in free)
    return {place: mask for place, mask in masks if mask is not None}
