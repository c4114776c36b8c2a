"""ALiBi slopes of another number of heads: slope_h = 2 ** (-8 (h + 1) / heads), for a power of two."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch import Tensor

from orderproof.models.hf.export_patches import patch_attribute
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

NAMES = ("build_alibi_tensor", "build_mpt_alibi_tensor", "build_alibi_bias")
HEADS = ("num_heads", "n_head")  # names of the argument


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if not _alibi_functions(reference.model):
        return
    heads = int(reference.config.num_attention_heads)
    for other in (2 * heads, heads // 2, 1 << (heads - 1).bit_length(), heads + 1, heads - 1):
        if other not in (heads, 0):
            patch = partial(_other_slopes, heads=heads, other=other)
            yield Candidate("other", "ALiBi slopes", f"of {heads} heads", f"of {other} heads", Change(patch=patch))


def _alibi_functions(model: Any) -> dict[str, Callable[..., Tensor]]:
    module = sys.modules[type(model).__module__]
    candidates = {name: getattr(module, name, None) for name in NAMES}
    return {name: value for name, value in candidates.items() if value is not None}


def _other_slopes(model: Any, *, heads: int, other: int) -> AbstractContextManager[object]:
    name, build = next(iter(_alibi_functions(model).items()))
    owner = sys.modules[type(model).__module__]

    def build_for_other(*arguments: Any, **options: Any) -> Tensor:
        """The bias of `other` heads, cut or repeated to `heads`."""
        changed = [other if each == heads and isinstance(each, int) else each for each in arguments]
        named = {key: other if key in HEADS else value for key, value in options.items()}
        bias = build(*changed, **named)
        axis = next(index for index, size in enumerate(bias.shape) if size % other == 0 and size >= other)
        rows = bias.shape[axis] // other
        split = bias.unflatten(axis, (rows, other))
        index = [each % other for each in range(heads)]
        return split.index_select(axis + 1, split.new_tensor(index).long()).flatten(axis, axis + 1)

    return patch_attribute(owner, name, build_for_other)


CAUSE = Cause("other", 110, _candidates)
