"""Arguments of operators: nested tuples, lists and dictionaries.

Torch's `pytree` does the same for any registered class, and took a sixth of the time of a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from orderproof.logic.terms import Term

_PLAIN: frozenset[type] = frozenset({
    type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format,
    torch.SymInt, Tensor, torch.nn.Parameter, Node, Term,
})  # fmt: skip
_ATOMS = frozenset({type(None), bool, int, float, str, torch.dtype})  # no mapping replaces them
_NUMBERS = _ATOMS | {torch.SymInt}  # `isinstance` asks a symbol for its class, which looks through the stack
_LISTS = frozenset({tuple, list, immutable_list})


def leaves(values: Any) -> list[Any]:
    """The values in nested tuples, lists and dictionaries, in order, as `pytree.tree_leaves` gives it."""
    found: list[Any] = []
    _collect(values, found)
    return found


def _collect(values: Any, found: list[Any]) -> None:
    kind = type(values)
    if kind in _PLAIN:
        found.append(values)
    elif kind in _LISTS:
        for value in values:
            _collect(value, found)
    elif kind is dict or kind is immutable_dict:
        for value in values.values():
            _collect(value, found)
    else:
        found += pytree.tree_leaves(values)


def tensors_in(values: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dictionaries."""
    return [x for x in leaves(values) if type(x) not in _NUMBERS and isinstance(x, Tensor)]


def map_leaves(kinds: type | tuple[type, ...], function: Callable[[Any], Any], values: Any) -> Any:
    """The same values with the results of a function in place of those of a kind, as `pytree.tree_map_only` does.

    Numbers, text and types of numbers in lists stay as they are: no caller replaces them.
    """
    kind = type(values)
    if kind in _PLAIN:
        return function(values) if issubclass(kind, kinds) else values
    if isinstance(values, kinds):
        return function(values)
    if kind in _LISTS:
        return kind([x if type(x) in _ATOMS else map_leaves(kinds, function, x) for x in values])
    if kind is dict or kind is immutable_dict:
        return kind({key: map_leaves(kinds, function, value) for key, value in values.items()})
    return pytree.tree_map_only(kinds, function, values)


def written_and_read(
    func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors to which an operator writes, and its other ones."""
    arguments = func._schema.arguments
    given = {**dict(zip((a.name for a in arguments), args, strict=False)), **kwargs}
    writes = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
    return (
        tensors_in([value for name, value in given.items() if name in writes]),
        tensors_in([value for name, value in given.items() if name not in writes]),
    )
