"""The value on top of the stack of a frame."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, GeneratorType
from typing import Any

import pytest

from orderproof.recording import value_stack
from orderproof.recording.value_stack import EMPTY, is_readable, stack_reader

pytestmark = pytest.mark.skipif(not is_readable(), reason="the stack of this version of Python is not read")


def results(function: Any, *arguments: Any) -> list[Any]:
    """The values on top of the stack before each instruction of a function."""

    def call() -> None:
        result = function(*arguments)
        if isinstance(result, GeneratorType):
            list(result)

    return results_within(call, function)


def results_within(block: Callable[[], object], function: Any) -> list[Any]:
    """The same for a function that a block calls."""
    found: list[Any] = []

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        if frame.f_code is not function.__code__:
            return None
        frame.f_trace_opcodes = True
        read = stack_reader(frame)

        def step(_frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "opcode":
                found.append(read())
            return step

        return step

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        block()
    finally:
        sys.settrace(before)
    return found


def test_a_result_that_no_variable_has_is_seen() -> None:
    def product(a: int, b: int) -> bool:
        return (a * 7 + b) == 37

    assert 35 in results(product, 5, 2)
    assert any(x is True for x in results(product, 5, 2))
    assert any(x is EMPTY for x in results(product, 5, 2))


def test_variables_and_cells_are_not_taken_for_the_stack() -> None:
    own, cell, free = object(), object(), object()

    def with_cells(first: object, second: object) -> object:
        def inner() -> tuple[object, object]:
            return second, free

        del first
        return inner

    assert not {id(x) for x in (own, cell, free)} & {id(x) for x in results(with_cells, own, cell)}


def test_an_unknown_version_has_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_stack, "_OFFSETS", {(2, 7): (0, 0, 0)})
    assert not is_readable.__wrapped__()


def test_a_wrong_layout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    code, count, values = value_stack._OFFSETS[sys.version_info[:2]]
    monkeypatch.setattr(value_stack, "_OFFSETS", {sys.version_info[:2]: (code + 8, count, values)})
    assert not is_readable.__wrapped__()


def test_a_generator_shows_its_stack() -> None:
    def numbers() -> Any:
        yield 5 * len("abc")

    assert 15 in results(numbers)


def test_a_generator_that_is_resumed_elsewhere_shows_its_stack() -> None:
    def resumed_below(depth: int, generator: Any) -> Any:
        return next(generator) if depth == 0 else resumed_below(depth - 1, generator)

    def products() -> Any:
        for factor in range(3):
            yield factor * 1000 + len("abc")

    def consume() -> None:
        generator = products()
        for depth in range(3):
            resumed_below(10 * depth, generator)

    assert {3, 1003, 2003} <= {x for x in results_within(consume, products) if type(x) is int}
