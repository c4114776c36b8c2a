"""Primitives of JAX as functions of torch, by name; each is registered where it is defined."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.jax_function.process import DTYPES
from orderproof.models.jax_function.sizes import Known, OpenSize, with_numbers

Value = Any  # a tensor, or a number: a literal, or a size and what is computed from sizes
Results = Value | Sequence[Value]


@dataclass(frozen=True)
class Primitive:
    """One equation of a program in one call.

    Attributes:
        name: Its primitive.
        inputs: Tensors and numbers.
        input_dtypes: The dtype of each input in the program.
        params: The parameters of the equation, with numbers for sizes.
        shapes: The shapes of its results, with open sizes.
        dtypes: The dtypes of its results.
        real: The dtype of the weights: that of every float32, and of every real number if it is float64.
        known: The numbers of the open sizes.
        run: (program, inputs) -> the results of a program among the parameters.

    """

    name: str
    inputs: tuple[Value, ...]
    input_dtypes: tuple[str, ...]
    params: Mapping[str, Any]
    shapes: tuple[tuple[Any, ...], ...]
    dtypes: tuple[str, ...]
    real: torch.dtype
    known: Known
    run: Callable[[Any, Sequence[Value]], list[Value]]

    def dtype(self, name: str) -> torch.dtype:
        """The dtype of torch for one of JAX. Raises `SubjectError`."""
        if name not in DTYPES:
            raise self.refuse(f"numbers of type {name}")
        found = DTYPES[name]
        if found is torch.complex64 and self.real is torch.float64:
            return torch.complex128
        wide = self.real is torch.float64 and found.is_floating_point
        return self.real if name == "float32" or wide else found

    @property
    def result_dtype(self) -> torch.dtype:
        """The dtype of the first result."""
        return self.dtype(self.dtypes[0])

    def shape(self, place: int = 0) -> list[Any]:
        """The shape of a result."""
        return [n.value(self.known) if isinstance(n, OpenSize) else n for n in self.shapes[place]]

    def tensor(self, place: int) -> Tensor:
        """An input as a tensor."""
        value = self.inputs[place]
        return value if isinstance(value, Tensor) else self.full(value, (), self.input_dtypes[place])

    def tensors(self) -> list[Tensor]:
        """All inputs as tensors."""
        return [self.tensor(place) for place in range(len(self.inputs))]

    def full(self, number: Any, shape: Sequence[Any], dtype: str) -> Tensor:
        """A tensor of one number."""
        return torch.full(tuple(shape), number, dtype=self.dtype(dtype))

    @property
    def are_numbers(self) -> bool:
        """True if no input is a tensor."""
        return not any(isinstance(x, Tensor) for x in self.inputs)

    def operands(self) -> list[Any]:
        """The inputs: tensors and numbers, of which at least one is a tensor."""
        return [self.tensor(0), *self.inputs[1:]] if self.are_numbers else list(self.inputs)

    def param(self, name: str, default: Any = None) -> Any:
        """A parameter, or its default."""
        return self.params.get(name, default)

    def refuse(self, what: str) -> SubjectError:
        """The error for a form of the primitive that is not supported."""
        return SubjectError(f"JAX primitive {self.name} is not supported with {what}")


_FUNCTIONS: dict[str, Callable[[Primitive], Results]] = {}


def primitive(*names: str) -> Callable[[Callable[[Primitive], Results]], Callable[[Primitive], Results]]:
    """Register a function for primitives. Raises `ValueError` for a name that has one."""

    def register(function: Callable[[Primitive], Results]) -> Callable[[Primitive], Results]:
        for name in names:
            if name in _FUNCTIONS:
                raise ValueError(f"JAX primitive {name} has two functions")
            _FUNCTIONS[name] = function
        return function

    return register


@cache
def functions() -> Mapping[str, Callable[[Primitive], Results]]:
    """Every function by the name of its primitive."""
    package = importlib.import_module("orderproof.models.jax_function.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _FUNCTIONS


def resolved(params: Mapping[str, Any], open_keys: Sequence[str], known: Known) -> Mapping[str, Any]:
    """Parameters with numbers for open sizes."""
    return {**params, **{key: with_numbers(params[key], known) for key in open_keys}} if open_keys else params
