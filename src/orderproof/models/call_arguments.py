"""Arguments of a call as people have them: tensors in containers and dataclasses, together with numbers and flags.

The tensors are the inputs of a subject; everything else is the same in every call.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    model: nn.Module, inputs: Sequence[Any] | Mapping[str, Any], names: Sequence[str] = ()
) -> tuple[TemplateCall, dict[str, Tensor]]:
    """A module that takes the tensors in these arguments, and the tensors by their names.

    A tensor has the name of its argument, or its key in a container. ``names`` are those of positional arguments.
    """
    found: dict[str, Tensor] = {}
    if isinstance(inputs, Mapping):
        return TemplateCall(model, (), {name: _emptied(name, value, found) for name, value in inputs.items()}), found
    named = zip((*names, *[""] * len(inputs)), inputs, strict=False)
    return TemplateCall(model, [_emptied(name, value, found) for name, value in named], {}), found


def _emptied(name: str, value: Any, found: dict[str, Tensor]) -> Any:
    """The value with a hole for each tensor, which is added to those found under the name of its innermost key."""
    if isinstance(value, Tensor):
        free = name if name and name not in found else f"input {len(found)}"
        found[free] = value
        return _Hole(len(found) - 1)
    return _mapped(value, lambda key, part: _emptied(key if isinstance(key, str) else name, part, found))


def _filled(value: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(value, _Hole):
        return tensors[value.number]
    return _mapped(value, lambda _, part: _filled(part, tensors))


def _mapped(value: Any, act: Callable[[Any, Any], Any]) -> Any:
    """A container of the same type whose parts are what `act` returns for key and part; other values as they are."""
    if isinstance(value, Mapping):
        parts = {key: act(key, part) for key, part in value.items()}
        return parts if type(value) is dict else type(value)(parts)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(act, value._fields, value))
    if isinstance(value, list | tuple):
        return type(value)(act(None, part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | _Hole):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                object.__setattr__(made, field.name, act(field.name, getattr(value, field.name)))
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
