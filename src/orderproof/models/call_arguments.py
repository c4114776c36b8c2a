"""Arguments of a call as people have them: tensors in containers and dataclasses, together with numbers and flags.

The tensors are the inputs of a subject; everything else is the same in every call. A block mask of flex attention is
given as the mask [row, head, token, token] that it stands for, from which a call builds it again.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models.forward_arguments import PassesKeywordsOn


@dataclass(frozen=True)
class _Hole:
    """The place of a tensor."""

    number: int


_ANY_LENGTH = 1 << 28  # the size of a block that has all tokens of a call


@dataclass(frozen=True)
class _BlockMaskHole(_Hole):
    """The place of a block mask of flex attention, and what it is built with besides its mask."""

    has_rows: bool
    has_heads: bool

    def filled(self, mask: Tensor) -> Any:
        """The block mask of a mask [..., token, token]: one block, since an eager call reads single entries."""
        from torch.nn.attention.flex_attention import BlockMask  # slow to import

        whole = mask[(None,) * (4 - mask.dim())].bool()

        def visible(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return whole[row * self.has_rows, head * self.has_heads, query, key]

        one = torch.ones(*whole.shape[:2], 1, dtype=torch.int32, device=whole.device)
        return BlockMask.from_kv_blocks(
            one,
            0 * one[..., None],
            BLOCK_SIZE=_ANY_LENGTH,
            mask_mod=visible,
            seq_lengths=(whole.shape[2], whole.shape[3]),
        )


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
    if (mask := _mask_of_blocks(value)) is not None:
        has_rows, has_heads = (size > 1 for size in mask.shape[:2])
        _emptied(name, mask, found)
        return _BlockMaskHole(len(found) - 1, has_rows, has_heads)
    return _mapped(value, lambda key, part: _emptied(key if isinstance(key, str) else name, part, found))


def _mask_of_blocks(value: Any) -> Tensor | None:
    """The mask [row, head, token, token] that a block mask stands for; None for other values."""
    flex = sys.modules.get("torch.nn.attention.flex_attention")
    if flex is None or not isinstance(value, flex.BlockMask):
        return None
    device = value.kv_num_blocks.device
    mask: Tensor = flex.create_mask(value.mask_mod, *value.shape, device=str(device))
    return mask


def _filled(value: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(value, _BlockMaskHole):
        return value.filled(tensors[value.number])
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
