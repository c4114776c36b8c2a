"""Sizes that a program of JAX leaves open: expressions such as `2*t + 1`, computed from the sizes of the inputs."""

from __future__ import annotations

import ast
import operator as op
from collections.abc import Callable, Mapping
from typing import Any

from orderproof.errors import SubjectError

Known = Mapping[str, Any]  # the number of each open size
LEAST = 2  # of an open size
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: op.add, ast.Sub: op.sub, ast.Mult: op.mul, ast.Pow: op.pow,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": op.floordiv, "mod": op.mod, "max": max, "min": min, "non_negative": lambda n: max(n, 0),
}  # fmt: skip


class OpenSize:
    """A size as an expression of open sizes. Raises `SubjectError` for one that cannot be read."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text.replace("^", "**"), mode="eval").body
        except SyntaxError as error:
            raise SubjectError(f"the size {text!r} of a program of JAX cannot be read") from error

    def __str__(self) -> str:
        return self.text

    def value(self, known: Known) -> Any:
        """Its number."""
        return self._value(self._tree, known)

    def _value(self, node: ast.AST, known: Known) -> Any:
        match node:
            case ast.Constant(value=int() as number):
                return number
            case ast.Name(id=name):
                return known[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, known)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
                return _BINARY[type(sign)](self._value(left, known), self._value(right, known))
            case ast.Call(func=ast.Name(id="mod"), args=[number, ast.Name(id=name)]) if _is_minus_one(number):
                return known[name] - 1  # without a question about the size
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(self._value(x, known) for x in arguments))
        raise SubjectError(f"the size {self.text!r} of a program of JAX cannot be read")


def _is_minus_one(node: ast.AST) -> bool:
    return ast.unparse(node) == "-1"


def read_sizes(value: Any) -> Any:
    """Plain data with an `OpenSize` for each size that is open."""
    if isinstance(value, Mapping):
        if set(value) == {"size"}:
            return OpenSize(value["size"])
        return {key: x if key == "program" else read_sizes(x) for key, x in value.items()}
    return [read_sizes(x) for x in value] if isinstance(value, list) else value


def has_open_sizes(value: Any) -> bool:
    """True if data contain an open size."""
    if isinstance(value, Mapping):
        return any(map(has_open_sizes, value.values()))
    return any(map(has_open_sizes, value)) if isinstance(value, list) else isinstance(value, OpenSize)


def with_numbers(value: Any, known: Known) -> Any:
    """Data with the number of each open size."""
    if isinstance(value, OpenSize):
        return value.value(known)
    if isinstance(value, Mapping):
        return {key: with_numbers(x, known) for key, x in value.items()}
    return [with_numbers(x, known) for x in value] if isinstance(value, list) else value
