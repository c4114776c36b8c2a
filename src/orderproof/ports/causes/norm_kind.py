"""Norms whose mean is not subtracted: w x / rms(x) + b in place of w (x - mean) / sqrt(variance + epsilon) + b."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.causes.norm_epsilon import ATTRIBUTES
from orderproof.ports.causes.precision import EPSILONS
from orderproof.ports.reference import Change, Reference

USUAL_EPSILON = 1e-5


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    names = sorted({type(norm).__name__ for norm in _layer_norms(reference.model)})
    for epsilon in (None, *EPSILONS) if names else ():
        own = "" if epsilon is None else f", epsilon {epsilon:g}"
        change = Change(prepare=partial(_do_not_subtract, epsilon=epsilon))
        yield Candidate("other", "norm", ", ".join(names), f"without the mean subtracted{own}", change, likely=True)


def _layer_norms(model: Any) -> list[Any]:
    """The norms of a module that subtract the mean, by their name; the name of an RMS norm says so."""
    parts = [part for part in model.modules() if type(part).__name__.endswith("LayerNorm")]
    return [part for part in parts if "RMS" not in type(part).__name__ and not list(part.children())]


def _do_not_subtract(model: Any, epsilon: float | None) -> None:
    for norm in _layer_norms(model):
        own = next((getattr(norm, name) for name in ATTRIBUTES if hasattr(norm, name)), USUAL_EPSILON)
        norm.register_forward_hook(partial(_root_mean_square, epsilon=own if epsilon is None else epsilon))


def _root_mean_square(norm: Any, arguments: tuple[Tensor, ...], output: Tensor, *, epsilon: float) -> Tensor:
    x = arguments[0].to(output.dtype)
    scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
    weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
    scaled = scaled if weight is None else scaled * weight
    return scaled if bias is None else scaled + bias


CAUSE = Cause("other", 107, _candidates)
