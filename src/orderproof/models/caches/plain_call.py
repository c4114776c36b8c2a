"""A module called with its example inputs but those of a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from orderproof.errors import SubjectError, UsageError
from orderproof.models.caches.cached_module import CacheArgument, cached_module
from orderproof.models.caches.example_caches import without_caches
from orderproof.models.caches.find_cache import find_cache
from orderproof.models.caches.names import is_cache_name
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.input_sampling import ExampleInputs, TokenAxes
from orderproof.models.vision.plain_image import is_image


class PlainCall(NamedTuple):
    """A module called with tensors, these by their names, the cache of the module, and notes."""

    module: nn.Module
    inputs: dict[str, Tensor]
    cache: CacheArgument | None = None
    notes: tuple[str, ...] = ()


def called_without_cache(
    module: nn.Module,
    inputs: Any,
    call: Callable[[Any], tuple[nn.Module, dict[str, Tensor]]],
    axes_of: Callable[[tuple[Tensor, ...]], TokenAxes],
    documents_of: Callable[[ExampleInputs], object],
    roles: Mapping[str, str],
) -> PlainCall:
    """The module called without its cache; with all inputs if it has none.

    Args:
        module: The module of the user.
        inputs: The example inputs.
        call: Inputs -> the module called with tensors, and these by the names of its arguments.
        axes_of: The token axes of tensors. Raises `SubjectError` and `UsageError`.
        documents_of: What packs documents in one row: such a row has no cache.
        roles: Those that are stated of arguments.

    Raises:
        UsageError: An argument is stated to be a cache, and calls do not take it as one.

    """
    rest, taken = without_caches(module, inputs, roles)
    called, given = call(rest)
    tensors = tuple(given.values())
    if not tensors[0].numel() or is_image(tensors):
        return PlainCall(*call(inputs))
    try:
        examples = ExampleInputs(tensors, axes_of(tensors), "")
    except (SubjectError, UsageError):
        return PlainCall(*call(inputs))  # the caller raises it for all inputs
    cache, refusal = (None, "") if documents_of(examples) else find_cache(called, examples, taken, tuple(given), roles)
    if cache is not None:
        return PlainCall(cached_module(called, cache, examples), given, cache)
    if stated := [name for name, role in roles.items() if role == "cache"]:
        why = refusal or "calls of further tokens take no part of the output, and no object, back by it"
        raise UsageError(f"expected argument {stated[0]!r} to take a cache, as stated; {why}")
    free = arguments_of_forward(called)
    left_out = [name for name in taken if is_cache_name(name) and name in free and free[name].default is None]
    if not refusal or not left_out or len(left_out) < len(taken):
        return PlainCall(*call(inputs))
    why = f"no cache, since a call with the example of one failed ({refusal})"
    return PlainCall(called, given, None, (f"argument {left_out[0]!r} is left out: {why}",))
