"""Functions of Python's library on open sizes: a model that divides by `math.sqrt(n)` keeps its n open.

The number is known to the graph as what torch computes from the sizes. A question of the model about it fixes them, as
for other symbolic floats (see `python_numbers.py`).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils._sympy import functions

_SYMBOLS = (torch.SymInt, torch.SymFloat)
_OF_ONE_NUMBER = ("sqrt", "log", "log2", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan")


def length_of(value: Any) -> Any:
    """The builtin `len`, which gives the open size of a tensor: that of Python has to return a number."""
    return value.shape[0] if isinstance(value, Tensor) and value.dim() else len(value)


def quotient_and_remainder(first: Any, second: Any) -> Any:
    """The builtin `divmod`."""
    if type(first) is torch.SymInt or type(second) is torch.SymInt:
        return first // second, first % second
    return builtins.divmod(first, second)


def _of_math(name: str) -> Callable[..., Any]:
    original = getattr(math, name)
    symbolic = getattr(functions, f"OpaqueUnaryFn_{name}")

    def function(number: Any, *others: Any) -> Any:
        if type(number) not in _SYMBOLS or others or number.node.hint is None:
            return original(number, *others)
        node = number.node
        value = original(node.hint)  # its errors are those of the call
        return node.shape_env.create_symfloatnode(symbolic(node.expr), hint=value)

    return function


class _Math(ModuleType):
    """The module `math`, with functions for which the size of a tensor stays open."""

    def __init__(self) -> None:
        super().__init__("math", math.__doc__)
        vars(self).update({**vars(math), **{name: _of_math(name) for name in _OF_ONE_NUMBER}})


_MATH = _Math()
BUILTINS: dict[str, Callable[..., Any]] = {"len": length_of, "divmod": quotient_and_remainder}
OF_MATH: dict[int, Any] = {  # by the identity of the object that a module of the model names
    id(math): _MATH,
    **{id(getattr(math, name)): getattr(_MATH, name) for name in _OF_ONE_NUMBER},
}
