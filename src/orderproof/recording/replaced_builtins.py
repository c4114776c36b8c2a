"""Functions that are replaced in the code of a model, for as long as it is recorded with open sizes.

Builtins and functions of `math` have replacements that know open sizes, and numpy has one for what it makes of them. A
function under `functools.lru_cache` is called without its cache, whose keys would be numbers: what it keeps for a
number is taken to be what it computes for it. So no call may write to it: the next one would get what was written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from torch import nn

from orderproof.recording.model_namespaces import CachedFunction, ModelNamespaces
from orderproof.recording.open_arrays import OpenNumpy, arrays_given_to_torch
from orderproof.recording.size_functions import OF_MATH

_MISSING = object()


@contextmanager
def replaced_builtins(
    module: nn.Module,
    replacements: Mapping[str, Any],
    kept: Callable[[str, Any], None],
    refuse: Callable[[str], NoReturn],
) -> Iterator[dict[str, None]]:
    """Under this, the modules of Python in which a model is defined find replacements for open sizes.

    Yields the names of the functions with a cache that were called without it; `kept` gets the name and the result of
    each such call, and `refuse` what is not covered.
    """
    found, called = ModelNamespaces(module), dict[str, None]()
    changed: list[tuple[dict[str, Any], str, Any]] = [
        (space, name, replacements[name]) for space in found.spaces for name in replacements if name not in space
    ]
    by_identity = OF_MATH | {id(np): OpenNumpy()}
    changed += [
        (space, name, by_identity[id(value)])
        for space in found.spaces
        for name, value in space.items()
        if id(value) in by_identity
    ]
    changed += [(space, name, _without_cache(space[name], called, kept)) for space, name in found.cached]
    before = [space.get(name, _MISSING) for space, name, _ in changed]
    for space, name, value in changed:
        space[name] = value
    try:
        with arrays_given_to_torch(refuse):
            yield called
    finally:
        for (space, name, _), old in zip(reversed(changed), reversed(before), strict=True):
            if old is _MISSING:
                del space[name]
            else:
                space[name] = old


def _without_cache(function: CachedFunction[Any], called: dict[str, None], kept: Callable[[str, Any], None]) -> Any:
    if not isinstance(function, CachedFunction):  # replaced already: it is named twice
        return function

    @functools.wraps(function.__wrapped__)
    def computed(*args: Any, **kwargs: Any) -> Any:
        called[function.__name__] = None
        result = function.__wrapped__(*args, **kwargs)
        kept(function.__name__, result)
        return result

    return computed


def cache_assumptions(called: Mapping[str, None]) -> tuple[str, ...]:
    """The sentence about functions whose cache was left out, if there are any."""
    names = ", ".join(called)
    return (f"what functools.lru_cache keeps is what the function computes: {names}",) if names else ()
