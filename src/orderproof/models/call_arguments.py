"""Arguments of a call as people have them: tensors in containers and dataclasses, together with numbers and flags.

The tensors are the inputs of a subject; everything else is the same in every call.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from orderproof.models.forward_arguments import PassesKeywordsOn


@dataclass(frozen=True)
class _Hole:
    """The place of a tensor."""

    number: int


class TemplateCall(PassesKeywordsOn):
    """A module called with tensors, which it gets where a template has places for them."""

    def __init__(self, model: nn.Module, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = model
        self.arguments, self.keywords = tuple(arguments), dict(keywords)

    def _gives(self, name: str, place: int) -> bool:
        return place < len(self.arguments) or self.keywords.get(name) is not None

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module with its arguments."""
        arguments = [_filled(value, inputs) for value in self.arguments]
        own = {name: _filled(value, inputs) for name, value in self.keywords.items()}
        return self.model(*arguments, **(own | keywords))


def template_call(
    model: nn.Module, inputs: Sequence[Any] | Mapping[str, Any]
) -> tuple[TemplateCall, tuple[Tensor, ...]]:
    """A module that takes the tensors in these arguments, and the tensors."""
    tensors: list[Tensor] = []
    if isinstance(inputs, Mapping):
        keywords = {name: _emptied(value, tensors) for name, value in inputs.items()}
        return TemplateCall(model, (), keywords), tuple(tensors)
    return TemplateCall(model, [_emptied(value, tensors) for value in inputs], {}), tuple(tensors)


def _emptied(value: Any, tensors: list[Tensor]) -> Any:
    """The value with a hole for each tensor, which is added to the list."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Hole(len(tensors) - 1)
    return _mapped(value, lambda part: _emptied(part, tensors))


def _filled(value: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(value, _Hole):
        return tensors[value.number]
    return _mapped(value, lambda part: _filled(part, tensors))


def _mapped(value: Any, act: Any) -> Any:
    """A container of the same type whose parts are what `act` returns for them; other values as they are."""
    if isinstance(value, Mapping):
        parts = {key: act(part) for key, part in value.items()}
        return parts if type(value) is dict else type(value)(parts)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(act, value))
    if isinstance(value, list | tuple):
        return type(value)(map(act, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type | _Hole):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                object.__setattr__(made, field.name, act(getattr(value, field.name)))
        return made
    return value


class PlainOutputs(PassesKeywordsOn):
    """A module whose outputs in dataclasses are returned in dictionaries, where their tensors have names."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def _gives(self, name: str, place: int) -> bool:
        del name, place
        return False

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module."""
        return as_dictionaries(self.model(*inputs, **keywords))


def as_dictionaries(value: Any) -> Any:
    """The value with a dictionary for each dataclass that torch does not take apart."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Mapping):
        return {field.name: as_dictionaries(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return value if not _has_dataclass(value.values()) else {k: as_dictionaries(v) for k, v in value.items()}
    if type(value) in (list, tuple) and _has_dataclass(value):
        return type(value)(map(as_dictionaries, value))
    return value


def _has_dataclass(values: Any) -> bool:
    return any(dataclasses.is_dataclass(value) and not isinstance(value, Mapping) for value in values)


# ------------------------------------------------------------------------------------------ masks


@dataclass(frozen=True)
class TriangularMask:
    """A mask [..., token, token] with one value up to a diagonal and another after it.

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

    def for_tokens(self, tokens: int, device: torch.device) -> Tensor:
        """The mask for a number of tokens."""
        index = torch.arange(tokens, device=device)
        seen = index <= index.unsqueeze(-1) + self.diagonal
        if self.dtype is torch.bool:
            mask = seen if self.first else ~seen
        else:
            mask = torch.where(seen, self.first, self.second).to(self.dtype)
        return mask[(None,) * self.leading]


def triangular_mask(value: Tensor, tokens: int) -> TriangularMask | None:
    """The mask of which this is the one for a number of tokens; None if it is none."""
    shape = tuple(value.shape)
    if len(shape) < 2 or tokens < 2 or shape != (1,) * (len(shape) - 2) + (tokens, tokens):
        return None
    square = value.detach().reshape(tokens, tokens)
    for diagonal in (0, -1, 1):
        if tokens <= diagonal + 1:
            continue
        mask = TriangularMask(diagonal, float(square[-1, 0]), float(square[0, -1]), value.dtype, len(shape) - 2)
        if mask.first != mask.second and torch.equal(mask.for_tokens(tokens, value.device), value.detach()):
            return mask
    return None


class ComputedInput(Protocol):
    """An input that follows from the number of tokens."""

    def for_tokens(self, tokens: int, device: torch.device) -> Tensor:
        """The input for a number of tokens."""


class WithMasks(PassesKeywordsOn):
    """A module some of whose inputs are computed for the number of tokens, not given."""

    def __init__(
        self, model: nn.Module, masks: Mapping[int, ComputedInput], tokens: tuple[int, int], count: int
    ) -> None:
        super().__init__()
        self.model = model
        self.masks = dict(masks)  # by the place of the input
        self.tokens = tokens  # the input and its axis that has tokens
        self.count = count  # of the inputs and masks together

    def _gives(self, name: str, place: int) -> bool:
        del name
        return not isinstance(self.model, PassesKeywordsOn) and place < self.count

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module with its inputs and the masks."""
        given = iter(inputs)
        place, axis = self.tokens
        count, device = inputs[place].shape[axis], inputs[place].device
        return self.model(*self._arguments(given, count, device), **keywords)

    def _arguments(self, given: Iterator[Tensor], count: int, device: torch.device) -> Iterator[Tensor]:
        for place in range(self.count):
            yield self.masks[place].for_tokens(count, device) if place in self.masks else next(given)
