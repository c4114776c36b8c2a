"""The activation function in the code of a model: another one where no key states it, or its parameters in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.ports.causes.activation_table import activations
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.causes.other_setting import ACTIVATION_KEY, ACTIVATIONS
from orderproof.ports.reference import Change, Reference


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    found = activations(reference.model)
    names = ", ".join(sorted({type(part).__name__ for part in found}))
    stated = any(ACTIVATION_KEY.match(key) for key in reference.config.to_dict())
    for other in ACTIVATIONS if found and not stated else ():
        yield Candidate("other", "activation", names, other, Change(prepare=partial(_replace, other=other)))
    for dtype in (torch.bfloat16, torch.float16) if any(_has_numbers(part) for part in found) else ():
        change = Change(prepare=partial(_narrow, dtype=dtype))
        narrow = f"in {str(dtype).removeprefix('torch.')}"
        yield Candidate("norm or constant precision", f"parameters of {names}", "in float32", narrow, change)


def _has_numbers(part: Any) -> bool:
    return any(True for _ in part.parameters())


def _narrow(model: Any, dtype: torch.dtype) -> None:
    for part in activations(model):
        part.to(dtype)


def _replace(model: Any, other: str) -> None:
    from transformers.activations import ACT2FN

    function = ACT2FN[other]

    def replaced(part: Any, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
        del part, output
        result: Tensor = function(arguments[0])
        return result

    for part in activations(model):
        part.register_forward_hook(replaced)


CAUSE = Cause("other", 109, _candidates)
