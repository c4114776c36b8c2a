"""Loops that write a row in each iteration over numbers that the tokens after it decide."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

BOTH = frozenset({"causal", "batch"})


def _over_others(m: Program, x: Tensor) -> Tensor:
    """Each row is written before it is read."""
    state, out = torch.zeros_like(x[:, 0]), m.second(x).flip(1)
    for t in range(x.shape[1]):
        state = torch.tanh(state + m.first(x[:, t]))
        out[:, t] = state
    return out


def _reads_the_last(m: Program, x: Tensor) -> Tensor:
    """The last row is read before it is written."""
    state, out = torch.zeros_like(x[:, 0]), m.second(x)
    for t in range(x.shape[1]):
        state = torch.tanh(state + m.first(out[:, -1]))
        out[:, t] = state + x[:, t]
    return out


def _leaves_one_out(m: Program, x: Tensor) -> Tensor:
    """The first row keeps what the last token decides."""
    state, out = torch.zeros_like(x[:, 0]), m.second(x).flip(1)
    for t in range(x.shape[1] - 1):
        state = torch.tanh(state + m.first(x[:, t]))
        out[:, t + 1] = state
    return out


def _after_the_first(m: Program, x: Tensor, *, first: int = 1) -> Tensor:
    """A state that begins with the first token, or the second, and a list that begins with it."""
    state = m.first(x[:, first - 1])
    out = [state]
    for t in range(1, x.shape[1]):
        state = torch.tanh(state + m.first(x[:, t]))
        out.append(state)
    return torch.stack(out, 1)


def _joined_after(m: Program, x: Tensor, *, last: bool = False) -> Tensor:
    """Rows that are joined after one that is there before the loop: the first, or the last."""
    state = torch.zeros_like(x[:, :1])
    out = [x[:, -1:] if last else x[:, :1]]
    for t in range(1, x.shape[1]):
        state = 0.5 * state + m.second(x[:, t : t + 1])
        out.append(state)
    return torch.cat(out, dim=1)


PROGRAMS = [
    Case("loop from the second token on", _after_the_first, BOTH),
    Case(
        "loop that begins with the second token",
        lambda m, x: _after_the_first(m, x, first=2),
        frozenset({"batch"}),
    ),
    Case("rows joined after the first", _joined_after, BOTH),
    Case("rows joined after the last", lambda m, x: _joined_after(m, x, last=True), frozenset({"batch"})),
    Case("rows written over others", _over_others, BOTH),
    Case("last row read before it is written", _reads_the_last, frozenset({"batch"})),
    Case("first row not written", _leaves_one_out, frozenset({"batch"})),
]
LATER = "tests.recording.test_sizes_of_loops:test_loops_from_a_later_token_on"
MUTANTS = [
    *mutants_of(
        "theorems.walks.context",
        M(
            "row_that_is_not_written_yet",
            "at_most(index(k), place[0])",
            "at_most(index(k), place[0] + 1)",
            program="rows written over others",
        ),
    ),
    *mutants_of(
        "recording.loop_recording",
        M("index_of_the_first_token", "lambda i: i + first", "lambda i: i", program=LATER),
        M("one_iteration_more", "OpenParts(self, end - first, $_source, $_frame, lambda i: i + first)",
          "OpenParts(self, end, $_source, $_frame, lambda i: i + first)", program=LATER),
    ),
]  # fmt: skip
