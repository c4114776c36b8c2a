"""Loops whose iterations need not run the same operators: they are recorded for the example's length only."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.theorems.programs import WIDTH, Program


def _counted(m: Program, x: Tensor) -> Tensor:
    count, state = 0, x[:, 0]
    for i in range(x.shape[1]):
        count = 2 * count + 1
        state = torch.tanh(state + x[:, i]) if count < 999 else x[:, -1]
    return x + state[:, None]


def _branched(m: Program, x: Tensor) -> Tensor:
    state = x[:, 0]
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i]) if i != 7 else x[:, -1]
    return x + state[:, None]


def _sliced_list(m: Program, x: Tensor) -> Tensor:
    state, outputs = x[:, 0], []
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
        outputs.append(state)
    return x + torch.stack(outputs[-2:], 1).sum(1, keepdim=True)


def _left_early(m: Program, x: Tensor) -> Tensor:
    state = x[:, 0]
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
        if i + 1 == 5:
            break
    return x + state[:, None]


def _changed_list(m: Program, x: Tensor) -> Tensor:
    state, weights = x[:, 0], [1.0] * 8
    for i in range(x.shape[1]):
        state = torch.tanh(state * weights[0] + x[:, i])
        weights[:] = [*weights[1:], weights[0] + 1]
    return x + state[:, None]


def _last_of_the_body(m: Program, x: Tensor) -> Tensor:
    state = last = x[:, 0]
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
        last = state * 2
    return x + last[:, None]


def _index_after(m: Program, x: Tensor) -> Tensor:
    state = x[:, 0]
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
    return x[:, i : i + 1] + state[:, None] + x


def _list_of_parts(m: Program, x: Tensor) -> Tensor:
    """The parts are put into a list first."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for token in list(x.unbind(1)):
        state = state + token
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _level_before(m: Program, x: Tensor) -> Tensor:
    """An iteration reads what the one before it kept."""
    level = before = x[:, 0]
    for i in range(x.shape[1]):
        level = 0.4 * x[:, i] + 0.6 * before
        before = level * 2 if i else level
    return x + level[:, None]


def _level_of_some(m: Program, x: Tensor) -> Tensor:
    """An iteration may read a name that it gave no value."""
    level = x[:, 0]
    before = level * 2
    for i in range(x.shape[1]):
        if i < 5:
            before = level
        level = 0.4 * x[:, i] + 0.6 * (level + before)
    return x + level[:, None]


def _level_after(m: Program, x: Tensor) -> Tensor:
    """The level before the last one is read after the loop."""
    level, before = x[:, 0], x[:, 0] * 2
    for i in range(x.shape[1]):
        before = level
        level = 0.4 * x[:, i] + 0.6 * (level + before)
    return x + level[:, None] + before[:, None]


def _first_two_apart(m: Program, x: Tensor) -> Tensor:
    """The first two iterations are others."""
    state = x[:, 0]
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i]) if i > 1 else x[:, i]
    return x + state[:, None]


def _three_states(m: Program, x: Tensor) -> Tensor:
    """A state of three steps before, of which two begin alike."""
    first = second = x[:, 0]
    third = x[:, 0] * 2
    for i in range(x.shape[1]):
        first, second, third = second, third, torch.tanh(first + x[:, i])
    return x + third[:, None]


def _list_read_from_its_end_after(m: Program, x: Tensor) -> Tensor:
    states = [x[:, 0]]
    for i in range(x.shape[1]):
        states.append(torch.tanh(states[-1] + x[:, i]))
    return x + states[-2][:, None]


def _list_read_far_from_its_end_after(m: Program, x: Tensor) -> Tensor:
    """Of two recorded iterations, this would be the first state."""
    states = [x[:, 0]]
    for i in range(x.shape[1]):
        states.append(torch.tanh(states[-1] + x[:, i]))
    return torch.stack(states[1:], 1) + states[-3][:, None]


def _two_left_out(m: Program, x: Tensor) -> Tensor:
    state, outputs = x[:, 0], []
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
        outputs.append(state)
    return torch.cat([x[:, :2], torch.stack(outputs[2:], 1)], 1)


def _list_read_from_its_start(m: Program, x: Tensor) -> Tensor:
    states = [x[:, 0]]
    for i in range(x.shape[1]):
        states.append(torch.tanh(states[i] + x[:, i]))
    return torch.stack(states[1:], 1)


def _three_of_a_list(m: Program, x: Tensor) -> Tensor:
    states = [x[:, 0]] * 3
    for i in range(x.shape[1]):
        states.append(torch.tanh(states[-1] + states[-3] + x[:, i]))
    return torch.stack(states[3:], 1)


def _swapped(m: Program, x: Tensor) -> Tensor:
    """Two tensors that change places."""
    state, one, other = x[:, 0], x[:, 0] * 2, x[:, -1]
    for i in range(x.shape[1]):
        state = torch.tanh(state + one + x[:, i])
        one, other = other, one
    return x + state[:, None]


def _delayed_and_read_after(m: Program, x: Tensor) -> Tensor:
    before, state = x[:, 0], x[:, 0] * 2
    for i in range(x.shape[1]):
        before, state = state, torch.tanh(before + x[:, i])
    return x + before[:, None] + state[:, None]


def _chosen_by_the_index(m: Program, x: Tensor) -> Tensor:
    """From the sixth iteration on another token is read."""
    state = x[:, 0]
    for i in range(x.shape[1]):
        state = torch.tanh(state + (x[:, i] if i < 5 else x[:, -1]))
    return x + state[:, None]


NOT_OPEN = [
    _two_left_out, _list_read_far_from_its_end_after, _list_read_from_its_end_after, _list_read_from_its_start,
    _three_of_a_list, _swapped, _delayed_and_read_after, _chosen_by_the_index,
    _first_two_apart, _three_states, _counted, _branched, _sliced_list, _left_early, _changed_list, _last_of_the_body,
    _index_after, _list_of_parts, _level_before, _level_of_some, _level_after,
]  # fmt: skip
