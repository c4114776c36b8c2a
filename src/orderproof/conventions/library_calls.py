"""Calls of the functions of a library: in this process, or in that of another interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.library import AnyFunction, Library
from orderproof.conventions.library_side import answering
from orderproof.conventions.library_side.answering import Numbers
from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.rotation.function import RotaryFunction
from orderproof.errors import UnsupportedCallError
from orderproof.library_messages import suppress_warnings
from orderproof.ports.engines.engine import EngineError
from orderproof.ports.environments.process import EngineServer
from orderproof.seeded_random import seeded_random


class Calls(Protocol):
    """Something that calls the functions of one side."""

    version: str

    @property
    def described(self) -> Mapping[str, Any]:
        """Kind, options and axes of each function."""

    def call(self, name: str, given: Mapping[str, Any]) -> Numbers:
        """The result of a function. Raises what it raises."""


class InterpreterCalls:
    """The process of another interpreter: one that ends or hangs is replaced by the next call."""

    def __init__(self, library: Library, python: Path) -> None:
        """Start it. Raises `EngineError`."""
        self.library, self.python = library, python
        self.server: EngineServer | None = None
        head = self._server().head
        self.version, self.functions = head["versions"][""], dict(head["functions"])

    @property
    def described(self) -> Mapping[str, Any]:
        """Kind, options and axes of each function."""
        return self.functions

    def _server(self) -> EngineServer:
        if self.server is None:
            self.server = self.library.server(self.python)
        return self.server

    def call(self, name: str, given: Mapping[str, Any]) -> Numbers:
        """The result of a function. Raises `UnsupportedCallError`, and `EngineError` if the process ends."""
        request = {"function": name, "given": {key: answering.to_line(x) for key, x in given.items()}}
        try:
            line = self._server().ask(request)
        except BaseException:  # it hangs, or has ended
            self.stop()
            raise
        if line["failure"]:
            raise UnsupportedCallError(line["failure"])
        found: Numbers = answering.of_line(line["found"])
        return found

    def stop(self) -> None:
        """End the process."""
        if self.server is not None:
            self.server.stop()
            self.server = None


@cache
def calls_of(library: Library, python: Path | None) -> Calls:
    """Calls of a library: in this process for None. Raises `EngineError`."""
    if python is not None:
        return InterpreterCalls(library, python)
    try:
        with suppress_warnings(), seeded_random(0):
            return answering.Side(library.side)
    except Exception as error:
        raise EngineError(f"{library.name} cannot be imported: {type(error).__name__}: {error}") from error


def functions_of(library: Library, python: Path | None, suffix: str = "") -> list[AnyFunction]:
    """The functions of a library in the form that questions have. Raises `EngineError`."""
    calls = calls_of(library, python)
    return [
        _function(calls, f"{library.name}.{name}{suffix}", *described, called=partial(_called, calls, name))
        for name, described in calls.described.items()
    ]


def _function(calls: Calls, name: str, kind: str, options: str, axes: str, *, called: Any) -> AnyFunction:
    takes = frozenset(options.split())
    call = _ByName(called, answering.TENSORS[kind])
    if kind == "attention":
        return AttentionFunction(name, calls.version, axes, takes ^ {"scores"}, call)
    if kind == "rotation":
        return RotaryFunction(name, calls.version, axes, call, takes)
    return PositionTable(name, calls.version, axes, call)


@dataclass(frozen=True)
class _ByName:
    """A call whose first arguments are given by position."""

    called: Any
    names: tuple[str, ...]

    def __call__(self, *given: Any, **options: Any) -> Tensor:
        found: Tensor = self.called(dict(zip(self.names, given, strict=True)) | options)
        return found


def _called(calls: Calls, name: str, given: Mapping[str, Any]) -> Tensor:
    found: Tensor = answering.torch_array(calls.call(name, {key: _numbers(x) for key, x in given.items()}))
    return found


def _numbers(given: Any) -> Any:
    """A tensor as numbers; a tuple of tensors too, and other options as they are."""
    if isinstance(given, tuple) and any(isinstance(x, Tensor) for x in given):
        return [_numbers(x) for x in given]
    if not isinstance(given, Tensor):
        return given
    return answering.torch_numbers(given)._replace(graded=given.requires_grad)
