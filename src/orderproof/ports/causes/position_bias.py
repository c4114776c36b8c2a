"""ALiBi slopes of another number of heads: slope_h = 2 ** (-8 (h + 1) / heads), for a power of two."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.models.hf.export_patches import patch_attribute
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

NAMES = ("_get_alibi_slopes", "build_alibi_tensor", "build_mpt_alibi_tensor", "build_alibi_bias")
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
    stack, module = ExitStack(), sys.modules[type(model).__module__]
    for name, build in _alibi_functions(model).items():
        stack.enter_context(patch_attribute(module, name, partial(_build_for_other, build, heads, other)))
    return stack


def _build_for_other(build: Callable[..., Tensor], heads: int, other: int, *arguments: Any, **options: Any) -> Tensor:
    """The slopes or the bias of `other` heads, cut or repeated to `heads`."""
    changed = [other if isinstance(each, int) and each == heads else each for each in arguments]
    named = {key: other if key in HEADS else value for key, value in options.items()}
    bias = build(*changed, **named)
    if changed == list(arguments) and named == options:  # called by another of these functions
        return bias
    axis = next(index for index, size in enumerate(bias.shape) if size % other == 0 and size >= other)
    split = bias.reshape(*bias.shape[:axis], bias.shape[axis] // other, other, *bias.shape[axis + 1 :])
    index = torch.tensor([each % other for each in range(heads)])
    return torch.flatten(split.index_select(axis + 1, index), axis, axis + 1)


CAUSE = Cause("other", 110, _candidates)
