"""Builtins and functions of numbers that a model calls with an open size: the size stays open."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from math import log

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from orderproof import prove


def _running_mean(x: Tensor, tokens: int) -> Tensor:
    return x.cumsum(1) / torch.arange(1, tokens + 1)[:, None]


def _by_len(x: Tensor) -> Tensor:
    return _running_mean(x, len(x[0])) + torch.zeros(len(x), 1, 1)


def _loop_over_len(x: Tensor) -> Tensor:
    first = x.transpose(0, 1)
    state, states = torch.zeros(len(x), 6), []
    for i in range(len(first)):
        state = torch.tanh(state + first[i])
        states.append(state)
    return torch.stack(states, 1)


def _over_unbind(x: Tensor) -> Tensor:
    state, states = x.new_zeros(x.shape[0], 6), []
    for place, part in enumerate(x.unbind(1), 1):
        state = state + part / place
        states.append(state)
    return torch.stack(states, 1)


def _over_a_tensor(x: Tensor) -> Tensor:
    state, states = x.new_zeros(x.shape[0], 6), []
    for part in x.transpose(0, 1):
        state = torch.tanh(state + part)
        states.append(state)
    return torch.stack(states, 1)


def _over_two(x: Tensor) -> Tensor:
    state, states = x.new_zeros(x.shape[0], 6), []
    for part, gate in zip(x.unbind(1), x.sigmoid().unbind(1), strict=True):
        state = gate * state + part
        states.append(state)
    return torch.stack(states, 1)


def _from_one_on(x: Tensor) -> Tensor:
    state = x[:, 0]
    states = [state]
    for i in range(1, x.shape[1]):
        state = torch.tanh(state + x[:, i])
        states.append(state)
    return torch.stack(states, 1)


def _from_one_on_joined(x: Tensor) -> Tensor:
    state = x[:, :1]
    states = [state]
    for i in range(1, x.shape[1]):
        state = torch.tanh(state + x[:, i : i + 1])
        states.append(state)
    return torch.cat(states, dim=1)


OPEN: dict[str, Callable[[Tensor], Tensor]] = {
    "len": _by_len,
    "a loop over len": _loop_over_len,
    "a loop over enumerate": _over_unbind,
    "a loop over a tensor": _over_a_tensor,
    "a loop over zip": _over_two,
    "a loop from 1 on": _from_one_on,
    "a loop from 1 on, joined": _from_one_on_joined,
    "a square root": lambda x: x.cumsum(1) / math.sqrt(x.shape[1]),
    "an imported function": lambda x: x.cumsum(1) * log(x.shape[1]),
    "a power": lambda x: x.cumsum(1) * x.shape[1] ** -0.5,
    "a tensor of a size": lambda x: x.cumsum(1) / torch.tensor(x.shape[1]).sqrt(),
    "a new tensor of a size": lambda x: x.cumsum(1) / x.new_tensor(x.shape[1]),
    "divmod": lambda x: pad(x.cumsum(1), (0, 0, 0, divmod(x.shape[1], 4)[1]))[:, : x.shape[1]],
}


def _other_length(x: Tensor) -> Tensor:
    state, states = x.new_zeros(x.shape[0], 6), []
    for part, later in zip(x.unbind(1), x[:, 1:].unbind(1), strict=False):
        state = state + part + 0 * later
        states.append(state)
    return torch.stack([*states, state], 1)


def _of_seven(x: Tensor) -> Tensor:
    state, states = x.new_zeros(x.shape[0], 6), []
    for part, one in zip(x.unbind(1), [1.0] * 7, strict=False):
        state = torch.tanh(state + one * part)
        states.append(state)
    return torch.cat([torch.stack(states, 1), x[:, 7:] + x[:, 7:].sum(1, keepdim=True)], 1)


LEAKS: dict[str, Callable[[Tensor], Tensor]] = {  # from 8 tokens on, or at once
    "len": lambda x: x + x.mean(1, keepdim=True) if len(x[0]) >= 8 else x.cumsum(1),
    "a square root": lambda x: x + x.mean(1, keepdim=True) if math.sqrt(x.shape[1]) >= 3 else x.cumsum(1),
    "a logarithm": lambda x: x + x.mean(1, keepdim=True) if math.log(x.shape[1]) > 2 else x.cumsum(1),
    "a remainder": lambda x: x + x.mean(1, keepdim=True) if divmod(x.shape[1], 8)[0] else x.cumsum(1),
    "a list of seven": _of_seven,
}


class Model(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.parametrize("name", OPEN)
def test_a_size_stays_open(name: str) -> None:
    finding = prove(Model(OPEN[name]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert finding.theorem.proved, finding.theorem.reason


@pytest.mark.parametrize("name", LEAKS)
def test_what_happens_at_other_sizes_is_not_missed(name: str) -> None:
    finding = prove(Model(LEAKS[name]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    theorem = finding.theorem
    assert theorem is None or not theorem.proved or (theorem.greatest_length or 64) < 8


def test_a_loop_through_two_lengths_is_not_open() -> None:
    finding = prove(Model(_other_length).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


def test_functions_of_math_are_put_back() -> None:
    assert prove(Model(OPEN["an imported function"]).eval(), "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"
    assert log is math.log is sys.modules["math"].log
    assert "len" not in globals()
