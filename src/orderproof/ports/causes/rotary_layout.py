"""The rotary layout: features are paired as (0, 1), (2, 3) ... in place of (0, d/2), (1, d/2 + 1) ..., or conversely.

R_interleaved(x) = P^-1 R_half(P x),    P moves the even features before the odd ones
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

from orderproof.models.hf.export_patches import patch_attribute
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

PREFIX = "apply_rotary"  # of the functions of transformers that rotate queries and keys


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    names = tuple(rotary_functions(reference.model))
    parts = [names, *((name,) for name in names if len(names) > 1)]  # an indexer may have a layout of its own
    for chosen in parts if names else ():
        for per_pair in (1, 2):  # entries of the table of cosines for a pair, as two libraries of angles have it
            for interleaved in (True, False):
                setting = "rotary layout" if chosen == names else f"rotary layout in {chosen[0]}"
                assumed = "interleaved pairs" if interleaved else "pairs half a head apart"
                patch = partial(_swapped_layout, names=chosen, to_interleaved=interleaved, per_pair=per_pair)
                yield Candidate("rotary layout", setting, "the other one", assumed, Change(patch=patch))


def rotary_functions(model: Any) -> dict[str, Callable[..., Any]]:
    """The functions of the module of a model that rotate queries and keys, by name."""
    module = sys.modules[type(model).__module__]
    return {name: value for name, value in vars(module).items() if name.startswith(PREFIX) and callable(value)}


def _swapped_layout(
    model: Any, *, names: Sequence[str], to_interleaved: bool, per_pair: int
) -> AbstractContextManager[object]:
    stack, module, functions = ExitStack(), sys.modules[type(model).__module__], rotary_functions(model)
    for name in names:
        stack.enter_context(patch_attribute(module, name, _wrap(functions[name], to_interleaved, per_pair)))
    return stack


def _wrap(rotate: Callable[..., Any], to_interleaved: bool, per_pair: int) -> Callable[..., Any]:  # noqa: FBT001
    @wraps(rotate)
    def rotate_in_other_layout(*arguments: Any, **options: Any) -> Any:
        tables = [each for each in arguments[1:] if isinstance(each, Tensor) and each.ndim < arguments[0].ndim]
        width = min(tables[0].shape[-1] * per_pair, arguments[0].shape[-1])
        forward, back = _orders(width, arguments[0].shape[-1], to_interleaved=to_interleaved)
        moved = [
            each[..., forward] if isinstance(each, Tensor) and each.ndim == arguments[0].ndim else each
            for each in arguments
        ]
        result = rotate(*moved, **options)
        if isinstance(result, Tensor):
            return result[..., back]
        return tuple(each[..., back] for each in result)

    return rotate_in_other_layout


def _orders(width: int, size: int, *, to_interleaved: bool) -> tuple[Tensor, Tensor]:
    """The order of the features before the rotation, and the one that undoes it."""
    pairs = torch.arange(width)
    even_first = torch.cat([pairs[0::2], pairs[1::2]])
    order = torch.cat([even_first if to_interleaved else even_first.argsort(), torch.arange(width, size)])
    return order, order.argsort()


CAUSE = Cause("rotary layout", 50, _candidates)
