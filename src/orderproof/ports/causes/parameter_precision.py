"""Parameters that a conversion rounded to a half precision; the arithmetic is in float32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

KINDS = {"parameters": 0, "matrices": 2}  # the least number of axes


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del reference, defaults
    for dtype in (torch.float16, torch.bfloat16):
        assumed = f"rounded to {str(dtype).removeprefix('torch.')}"
        for kind, axes in KINDS.items():
            change = Change(prepare=partial(_round_parameters, dtype=dtype, axes=axes))
            yield Candidate("norm or constant precision", kind, "in float32", assumed, change)


def _round_parameters(model: Any, dtype: torch.dtype, axes: int) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point() and parameter.ndim >= axes:
                parameter.copy_(parameter.to(dtype))


CAUSE = Cause("norm or constant precision", 104, _candidates)
