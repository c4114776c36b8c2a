"""Operators of ONNX as functions of torch, by name; each is registered where it is defined."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.values import Value, as_tensor, integers

Results = Value | Sequence[Value]
STANDARD_DOMAINS = ("", "ai.onnx", "com.microsoft")


@dataclass(frozen=True)
class Operation:
    """One node of a graph in one call.

    Attributes:
        name: Its operator.
        inputs: Its inputs; None for one that is absent.
        attributes: Its attributes by name.
        version: The version of the operator set.
        output_names: The names of its outputs; empty for one that nothing reads.
        real: The dtype of the weights: that of casts to float32.
        graphs: Its branches, or the body of its loop, as functions of the inputs of the graph.

    """

    name: str
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, Any]
    version: int
    output_names: tuple[str, ...]
    real: torch.dtype
    graphs: Mapping[str, Callable[..., list[Value]]]

    @property
    def output_count(self) -> int:
        """The number of outputs that it lists."""
        return len(self.output_names)

    def wants(self, place: int) -> bool:
        """True if an output has a name."""
        return place < len(self.output_names) and bool(self.output_names[place])

    def value(self, place: int) -> Value:
        """An input that must be there. Raises `SubjectError`."""
        found = self.optional(place)
        if found is None:
            raise SubjectError(f"ONNX operator {self.name} has no input {place}")
        return found

    def optional(self, place: int) -> Value | None:
        """An input, or None."""
        return self.inputs[place] if place < len(self.inputs) else None

    def tensor(self, place: int) -> Tensor:
        """An input as a tensor. Raises `SubjectError`."""
        return as_tensor(self.value(place))

    def optional_tensor(self, place: int) -> Tensor | None:
        """An input as a tensor, or None."""
        found = self.optional(place)
        return None if found is None else as_tensor(found)

    def listed(self, attribute: str, place: int) -> list[Any] | None:
        """Integers that older versions have as an attribute and newer ones as an input; None without them."""
        if attribute in self.attributes:
            return list(self.attributes[attribute])
        found = self.optional(place)
        return None if found is None else integers(found)

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.attributes.get(name, default)

    def with_inputs(self, *inputs: Value | None) -> Operation:
        """The same call with other inputs."""
        return replace(self, inputs=inputs)

    def refuse(self, what: str) -> SubjectError:
        """The error for a form of the operator that is not supported."""
        return SubjectError(f"ONNX operator {self.name} is not supported with {what}")


_FUNCTIONS: dict[str, Callable[[Operation], Results]] = {}


def operator(
    *names: str, domain: str = ""
) -> Callable[[Callable[[Operation], Results]], Callable[[Operation], Results]]:
    """Register a function for operators, of one domain or of all. Raises `ValueError` for a name that has one."""

    def register(function: Callable[[Operation], Results]) -> Callable[[Operation], Results]:
        for name in (f"{domain}.{name}" if domain else name for name in names):
            if name in _FUNCTIONS:
                raise ValueError(f"ONNX operator {name} has two functions")
            _FUNCTIONS[name] = function
        return function

    return register


def function_of(domain: str, name: str) -> Callable[[Operation], Results] | None:
    """The function of an operator of a domain; that of the standard domain serves the others. None without one."""
    known = functions()
    return known.get(f"{domain}.{name}") or (known.get(name) if domain in STANDARD_DOMAINS else None)


@cache
def functions() -> Mapping[str, Callable[[Operation], Results]]:
    """Every function by the name of its operator; the folder is listed once, since each node asks."""
    package = importlib.import_module("orderproof.models.onnx_file.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _FUNCTIONS
