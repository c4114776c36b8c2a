"""Loops of open length: which ones are recorded for every length, and the invariants of their inductions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from orderproof.errors import CaptureError
from orderproof.recording.loop_operators import LOOP_END, LOOP_STATE
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.open_execution import execute_open
from tests.theorems.loops import IN_CHUNKS, LOOPS, written_parts
from tests.theorems.loops_not_open import NOT_OPEN
from tests.theorems.programs import WIDTH, Program


def _record(function: Callable, tokens: int = 13) -> list[OpenGraph]:
    torch.manual_seed(0)
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    return record_open(Program(function).eval(), inputs, {"batch": 3, "tokens": tokens})


@pytest.mark.parametrize("function", NOT_OPEN, ids=lambda f: f.__name__)
def test_a_loop_whose_iterations_may_differ_is_not_recorded_for_every_length(function: Callable) -> None:
    with pytest.raises(CaptureError, match="is for 13 tokens only"):
        _record(function)


def test_the_reason_of_a_fixed_length_is_that_of_the_loop() -> None:
    def weighted(m: Program, x: torch.Tensor) -> torch.Tensor:
        state, states = x[:, 0], []
        for i, row in enumerate(x.unbind(1)):
            state = state + row * (i / x.shape[1])
            states.append(state)
        return torch.stack(states, 1)

    reason = "13 tokens only: a loop of open length computes a number from its index: index a tensor"
    with pytest.raises(CaptureError, match=reason):
        _record(weighted)


def test_a_loop_is_recorded_once_whatever_its_length() -> None:
    cases = {case.name: case.function for case in [*LOOPS, *IN_CHUNKS]}
    (stacked,) = _record(cases["a recurrence whose outputs are stacked"])
    (other,) = _record(cases["a recurrence whose outputs are stacked"], 17)
    targets = [[str(n.target) for n in g.graph.nodes if n.op == "call_function"] for g in (stacked, other)]
    assert targets[0] == targets[1]
    (written,) = _record(cases["a recurrence that writes its outputs"])
    for graph, states in ((stacked, 1), (written, 3)):
        assert [n.target for n in graph.graph.nodes].count(LOOP_STATE) == states
        assert [n.target for n in graph.graph.nodes].count(LOOP_END) == 1
        assert not graph.conditions or all(str(c) == "true" for c in graph.conditions)


def test_a_loop_may_write_to_the_parts_of_a_tensor() -> None:
    (graph,) = _record(written_parts)
    assert [n.target for n in graph.graph.nodes].count(LOOP_END) == 1
    torch.manual_seed(0)
    module, x = Program(written_parts).eval(), torch.randn(2, 19, WIDTH)
    with torch.no_grad():
        found = execute_open(graph, (x,), {"batch": 2, "tokens": 19})
        assert found is not None
        torch.testing.assert_close(found["output"], module(x))


def test_a_range_of_a_number_stays_that_of_python() -> None:
    def repeated(m: Program, x: torch.Tensor) -> torch.Tensor:
        kinds = {type(range(3))}
        for _ in range(2):
            x = m.first(x)
        return x if kinds == {range} else x.flip(1)

    (graph,) = _record(repeated)
    assert [str(n.target) for n in graph.graph.nodes].count("aten.linear.default") == 2
    assert "range" not in vars(__import__("tests.theorems.programs", fromlist=["programs"]))
