"""Frames of Python with the lines of a JAX program, so that a recording finds the lines of the user.

A recording reads the source lines of an operator from the stack. An operator of a program is called through one
function for each line that the user's code was at, whose code object has the file, the name and the line of that code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

Frame = tuple[str, str, int]  # file, function, line
_pending: list[Callable[[], Any]] = []  # the call that the innermost function makes


def _line() -> Any:
    return _inner()  # noqa: F821 - a global of each copy of this function


def _call() -> Any:
    return _pending.pop()()


class Lines:
    """Calls functions at lines of the user; equal lines share their functions."""

    def __init__(self) -> None:
        self._functions: dict[tuple[Frame, ...], Callable[[], Any]] = {(): _call}

    def call(self, frames: Sequence[Frame], work: Callable[[], Any]) -> Any:
        """The result of a function that is called at lines, outermost first."""
        _pending.append(work)
        return self.at(tuple(frames))()

    def at(self, frames: tuple[Frame, ...]) -> Callable[[], Any]:
        """The function for lines."""
        if frames not in self._functions:
            file, name, line = frames[0]
            code = _line.__code__
            shift = next(number for _, _, number in code.co_lines() if number and number > code.co_firstlineno)
            code = code.replace(
                co_filename=file, co_name=name.rpartition(".")[2], co_qualname=name,
                co_firstlineno=line - (shift - code.co_firstlineno),
            )  # fmt: skip
            self._functions[frames] = FunctionType(code, {"_inner": self.at(frames[1:])}, name)
        return self._functions[frames]

    def __deepcopy__(self, memo: Any) -> Lines:
        return self
