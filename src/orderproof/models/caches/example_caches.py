"""The caches among example inputs, taken out of them: a call then starts without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from orderproof.models.caches.cache_values import leaves
from orderproof.models.caches.first_values import has_update
from orderproof.models.caches.names import OFFSET_NAMES, is_cache_name, is_flag_name, is_state_name
from orderproof.models.forward_arguments import arguments_of_forward


def without_caches(module: nn.Module, inputs: Any, roles: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """The example inputs without those that may be caches, flags for them or numbers of cached tokens, and these.

    The inputs are as they are if there are none.
    """
    if isinstance(inputs, Mapping):
        named = dict(inputs)
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        names = [n for n, one in arguments_of_forward(module).items() if one.kind is one.POSITIONAL_OR_KEYWORD]
        if len(inputs) > len(names):
            return inputs, {}
        named = dict(zip(names, inputs, strict=False))
    else:
        return inputs, {}
    first = next((name for name, value in named.items() if _has_tensors(value)), None)
    stated = {name for name, role in roles.items() if role == "cache"}
    taken = {
        name: value
        for name, value in named.items()
        if name != first and (name in stated or (name not in roles and _may_be_cache(name, value)))
    }
    if not any(name in stated or _is_cache_like(name, value) for name, value in taken.items()):
        return inputs, {}
    return {name: value for name, value in named.items() if name not in taken}, taken


def _may_be_cache(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return is_flag_name(name)
    if type(value) is int or (isinstance(value, Tensor) and value.dim() == 0 and not value.is_floating_point()):
        return int(value) == 0 and (name in OFFSET_NAMES or not isinstance(value, Tensor))
    return _is_cache_like(name, value)


def _is_cache_like(name: str, value: Any) -> bool:
    if value is None or isinstance(value, str | int | float):
        return value is None and is_cache_name(name)
    if isinstance(value, Tensor):
        return value.is_floating_point() and is_state_name(name)
    if isinstance(value, nn.Module):
        return is_cache_name(name)
    if callable(value):
        return is_cache_name(name) or (isinstance(value, type) and has_update(value))
    return is_cache_name(name) or _has_tensors(value) or _is_object(value)


def _has_tensors(value: Any) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in leaves(value).values())


def _is_object(value: Any) -> bool:
    return not isinstance(value, list | tuple | dict) and has_update(value)
