"""Calculations and branches on what only a symbol or a meta tensor answers otherwise: no theorem may follow.

Each model is causal for fewer than 90 tokens; from then on, its outputs depend on all tokens.
"""

from __future__ import annotations

import ctypes
import decimal
import json
import marshal
import math
import operator
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.recording import instruction_trace, open_recording
from orderproof.recording.eager_instructions import trace_eager_call
from orderproof.recording.instruction_trace import Event, InstructionTrace, untraced
from orderproof.recording.value_stack import is_readable

F = torch.FloatTensor
MANY = 90
ALIASES = {"type": type, "symbol": torch.SymInt}


def error_of(function: Callable[..., Any], *arguments: Any) -> bool:
    """True if a function accepts its arguments."""
    try:
        function(*arguments)
    except Exception:
        return False
    return True


class Context:
    """Swallows every error."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> bool:
        return True


def swallowed(n: int) -> int:
    with Context():
        json.dumps(n)
        return 1
    return 0


class Weight(float):
    def __mul__(self, other: Any) -> Any:
        return float(self) * other


# 1 for an int, and a tensor of the CPU; 0 or an error for a symbol, and a meta tensor.
CALCULATED: dict[str, Callable[[Tensor, int], int]] = {
    "class of a tensor by another name": lambda x, n: isinstance(x, F) * (n // MANY),
    "class of a tensor in a table": lambda x, n: [0, 1][isinstance(x, F)] * (n // MANY),
    "class of a tensor, added": lambda x, n: int((isinstance(x, F) + n // MANY) > 1),
    "class of a symbol": lambda x, n: (not isinstance(n, ALIASES["symbol"])) * (n // MANY),
    "type by another name": lambda x, n: (ALIASES["type"](n) is int) * (n // MANY),
    "class of the type": lambda x, n: issubclass(ALIASES["type"](n), int) * (n // MANY),
    "name of the type": lambda x, n: (len(ALIASES["type"](n).__name__) == 3) * (n // MANY),
    "attribute": lambda x, n: (1 - hasattr(n, "node")) * (n // MANY),
    "default of getattr": lambda x, n: getattr(n, "node", 1) * (n // MANY) if not hasattr(n, "node") else 0,
    "an error of json": lambda x, n: error_of(json.dumps, n) * (n // MANY),
    "an error of decimal": lambda x, n: error_of(decimal.Decimal, n) * (n // MANY),
    "an error of marshal": lambda x, n: error_of(marshal.dumps, n) * (n // MANY),
    "an error of a sequence": lambda x, n: error_of(operator.mul, "a", True) * error_of(json.dumps, [n]) * (n // MANY),
    "an error in a block": lambda x, n: swallowed(n) * (n // MANY),
    "dispatch keys": lambda x, n: ("CPU" in str(torch._C._dispatch_keys(x))) * (n // MANY),
    "length of a text": lambda x, n: (len(repr(ALIASES["type"](n))) == 13) * (n // MANY),
    "key of a class": lambda x, n: {int: 1}.get(ALIASES["type"](n), 0) * (n // MANY),
    "a set of classes": lambda x, n: ({ALIASES["type"](n)} == {int}) * (n // MANY),
    "order of classes": lambda x, n: (1 - [int, torch.SymInt].index(ALIASES["type"](n))) * (n // MANY),
    "isinstance in a generator": lambda x, n: any(isinstance(y, F) for y in (x,)) * (n // MANY),
    "isinstance in a map": lambda x, n: sum(map(F.__instancecheck__, [x])) * (n // MANY)
    if hasattr(F, "__instancecheck__")
    else 0,
    "method of a class": lambda x, n: (ALIASES["type"](n).bit_length is int.bit_length) * (n // MANY),
    "a weight": lambda x, n: int(Weight(isinstance(x, F)) * (n // MANY)),
    "an exponent": lambda x, n: (n // MANY) ** (2 - isinstance(x, F)) if isinstance(x, F) else 0,
    "a remainder": lambda x, n: (n // MANY) % (1 + isinstance(x, F)),
    "a maximum": lambda x, n: max(0, (n // MANY) - (1 - isinstance(x, F)) * 10**6),
    "a shift": lambda x, n: (n // MANY) << (isinstance(x, F) - 1) if isinstance(x, F) else 0,
    "a rounded factor": lambda x, n: math.floor((0.2 + 0.8 * isinstance(x, F)) * (n // MANY)),
}  # fmt: skip
ASKED: dict[str, Callable[[Tensor, int], Any]] = {
    "struct": lambda x, n: error_of(struct.pack, "q", n) and error_of(json.dumps, n) and n >= MANY,
    "ctypes": lambda x, n: error_of(ctypes.c_long, n) and error_of(json.dumps, n) and n >= MANY,
    "walrus": lambda x, n: (kind := ALIASES["type"](n)) is int and kind(n) >= MANY,
    "match": lambda x, n: matched(n) and n >= MANY,
    "conditional import": lambda x, n: __import__("json").dumps([0, 1][isinstance(x, F)]) == "1" and n >= MANY,
    "comprehension": lambda x, n: [y for y in (x,) if isinstance(y, F)] and n >= MANY,
    "error in another function": lambda x, n: error_of(lambda: error_of(json.dumps, n) or 1 / 0) and n >= MANY,
}


def matched(n: Any) -> bool:
    match ALIASES["type"](n)():
        case 0:
            return True
    return False


class Calculated(nn.Module):
    def __init__(self, factor: Callable[[Tensor, int], int]) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1).roll(self.factor(x, x.shape[1]), 1)


class Asked(nn.Module):
    def __init__(self, is_special: Callable[[Tensor, int], Any]) -> None:
        super().__init__()
        self.is_special = is_special

    def forward(self, x: Tensor) -> Tensor:
        return x + x.mean(1, keepdim=True) if self.is_special(x, x.shape[1]) else x.cumsum(1)


def has_theorem(module: nn.Module) -> bool:
    finding = prove(module.eval(), "causal", inputs=torch.randn(2, 7, 6))
    return finding.theorem is not None and finding.theorem.proved and finding.theorem.greatest_length is None


@pytest.mark.skipif(not is_readable(), reason="results of instructions are not read in this version of Python")
@pytest.mark.parametrize("name", CALCULATED)
def test_a_calculation_with_what_a_symbol_is_has_no_theorem(name: str) -> None:
    assert not has_theorem(Calculated(CALCULATED[name]))


@pytest.mark.parametrize("name", ASKED)
def test_a_branch_on_what_a_symbol_is_has_no_theorem(name: str) -> None:
    assert not has_theorem(Asked(ASKED[name]))


def test_calculations_with_sizes_have_a_theorem() -> None:
    class Sizes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            b, n, d = x.shape
            names = {"tokens": n, "rows": b}
            y = x.reshape(b * n, d).reshape(names["rows"], n, d)
            return y.cumsum(1) / math.sqrt(d) + torch.arange(n)[:, None] * (n // 3 - n % 5) + torch.zeros(n, d)

    assert has_theorem(Sizes())


class Sum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return x.sum() + n * 3


def test_equal_calls_have_equal_instructions() -> None:
    one, other = (trace_eager_call(Sum(), (torch.randn(2, 7),))[1] for _ in range(2))
    assert one.events
    assert one.difference(other, lambda *_: None) == ""
    assert {7, 3, 21} <= one.numbers or not is_readable()


@pytest.mark.skipif(not is_readable(), reason="results of instructions are not read in this version of Python")
def test_the_first_other_result_is_named_with_its_line() -> None:
    one, other = (trace_eager_call(Sum(), (torch.randn(2, n),))[1] for n in (7, 8))
    assert "test_instruction_trace.py" in one.difference(other, lambda *_: None)


def test_what_is_not_traced_leaves_no_event() -> None:
    trace, before = InstructionTrace(), trace_eager_call(Sum(), (torch.randn(2, 7),))[1]
    with trace.tracing(), untraced():
        Sum()(torch.randn(2, 7))
    assert len(trace.events) < len(before.events) / 2


def test_lines_are_traced_where_instructions_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruction_trace, "_has_instructions", lambda: False)
    trace = InstructionTrace()
    of_frame = trace._tracer
    monkeypatch.setattr(trace, "_tracer", lambda frame: partial(_without_instructions, of_frame(frame)))
    with trace.tracing():
        Sum()(torch.randn(2, 7))
    first = Sum.forward.__code__.co_firstlineno
    lines = [-1 - e.offset for e in trace.events if isinstance(e, Event) and e.offset < -1]
    assert {first + 1, first + 2} <= set(lines)


def _without_instructions(step: Callable[..., Any], frame: Any, event: str, argument: Any) -> Any:
    if event != "opcode":
        step(frame, event, argument)
    return partial(_without_instructions, step)


def test_a_theorem_says_if_results_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_recording, "is_readable", lambda: False)
    finding = prove(Asked(lambda *_: False).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert any("results are compared on CPython 3.11 only" in text for text in finding.theorem.assumptions)
