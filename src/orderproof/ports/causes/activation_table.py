"""Activations from a table in float16, as llama.cpp has one for GELU: the input is rounded, and so is the output.

table(x) = f16(f(f16(x)))   for |x| < 10, else f(x)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

MODULES = ("transformers.activations", "torch.nn.modules.activation")
END = 10.0  # of the table


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if activations(reference.model):
        change = Change(prepare=_use_tables)
        assumed = "from a table in float16"
        yield Candidate("norm or constant precision", "activation", "in float32", assumed, change, rounds=True)


def activations(model: Any) -> list[Any]:
    """The activation functions, each once."""
    parts = [part for part in model.modules() if not list(part.children())]
    return [part for part in parts if type(part).__module__ in MODULES or "gelu" in type(part).__name__.lower()]


def _use_tables(model: Any) -> None:
    for activation in activations(model):
        activation.register_forward_hook(_from_table)


def _from_table(activation: Any, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
    inputs = arguments[0]
    rounded: Tensor = activation.forward(inputs.to(torch.float16).to(inputs.dtype)).to(torch.float16).to(inputs.dtype)
    return torch.where(inputs.abs() < END, rounded, output)


CAUSE = Cause("norm or constant precision", 103, _candidates)
