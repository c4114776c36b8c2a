"""The factor of embeddings, such as the root of their width, that was rounded, and factors that are not applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

ATTRIBUTE = "embed_scale"  # of the embedding of a model, a number or a buffer
Other = Callable[[float], float]


def _in(dtype: torch.dtype) -> Other:
    return lambda scale: float(torch.tensor(scale).to(dtype))


VALUES: dict[str, Other] = {
    "rounded to 2 decimals": lambda scale: round(scale, 2),
    "rounded to bfloat16": _in(torch.bfloat16),
    "rounded to float16": _in(torch.float16),
    "not applied": lambda scale: 1.0,
}


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    scales = sorted({float(getattr(part, ATTRIBUTE)) for part in _embeddings(reference.model)})
    for assumed, other in VALUES.items():
        if any(other(scale) != float(torch.tensor(scale)) for scale in scales):
            change = Change(prepare=partial(_replace, other=other))
            yield Candidate("other", "scale of embeddings", f"{scales[0]:g}", assumed, change, likely=True)
    for name, value in sorted(_factors(reference.model)):
        if name != ATTRIBUTE and value != 1.0:
            change = Change(prepare=partial(_leave_out, factor=name))
            yield Candidate("other", name, f"{value:g}", "not applied", change)


def _factors(model: Any) -> set[tuple[str, float]]:
    """The single numbers that modules keep as buffers, by their names."""
    buffers = ((name.rpartition(".")[2], each) for name, each in model.named_buffers())
    return {(name, float(each)) for name, each in buffers if each.ndim == 0 and each.is_floating_point()}


def _leave_out(model: Any, factor: str) -> None:
    for name, each in model.named_buffers():
        if name.rpartition(".")[2] == factor:
            each.fill_(1.0)


def _embeddings(model: Any) -> list[Any]:
    return [part for part in model.modules() if isinstance(getattr(part, ATTRIBUTE, None), (float, torch.Tensor))]


def _replace(model: Any, other: Other) -> None:
    for part in _embeddings(model):
        old = getattr(part, ATTRIBUTE)
        new = other(float(old))
        setattr(part, ATTRIBUTE, torch.full_like(old, new) if isinstance(old, torch.Tensor) else new)


CAUSE = Cause("other", 108, _candidates)
