"""Keys and values in a half precision, as from a cache in float16, or all that a kernel of attention reads and writes.

y = softmax(q f16(k)^T) f16(v)      y = f16(softmax(f16(q) f16(k)^T) f16(v))
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

PARTS = {"keys and values": (1, 2), "inputs and output of attention": (0, 1, 2)}  # the inputs that are rounded


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if _eager_function(reference.model) is None:
        return
    for dtype in (torch.float16, torch.bfloat16):
        narrow = f"rounded to {str(dtype).removeprefix('torch.')}"
        for part, places in PARTS.items():
            change = Change(prepare=partial(_round_inputs, dtype=dtype, places=places))
            yield Candidate("norm or constant precision", part, "in float32", narrow, change, rounds=True)


def _eager_function(model: Any) -> Any:
    """The eager attention in the module of a model's class; None if it has none that all its layers call."""
    return getattr(sys.modules[type(model).__module__], "eager_attention_forward", None)


def _round_inputs(model: Any, dtype: torch.dtype, places: tuple[int, ...]) -> None:
    from transformers.masking_utils import AttentionMaskInterface, eager_mask
    from transformers.modeling_utils import AttentionInterface

    eager, name = _eager_function(model), f"orderproof_{len(places)}_in_{str(dtype).rpartition('.')[2]}"

    def narrow(values: Tensor) -> Tensor:
        return values.to(dtype).to(values.dtype)

    def rounded(part: Any, *inputs: Any, **options: Any) -> Any:
        given = [narrow(each) if place in places else each for place, each in enumerate(inputs)]
        output, weights = eager(part, *given, **options)
        return narrow(output) if 0 in places else output, weights

    AttentionInterface.register(name, rounded)
    AttentionMaskInterface.register(name, eager_mask)
    for part in model.modules():
        if hasattr(getattr(part, "config", None), "_attn_implementation"):
            part.config._attn_implementation = name


CAUSE = Cause("norm or constant precision", 102, _candidates)
