"""Recurrent layers: torch's where torch has them, whose gates are in another order, and otherwise step by step.

A row ends at its length: outputs after it are zero, the last states are those at its last token, and the reverse
direction starts there. A row without tokens has last states of zero, as in ONNX Runtime, also if first ones are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.indexing import reversed_rows
from orderproof.models.onnx_file.operators.recurrent_steps import Layer, stepped
from orderproof.models.onnx_file.values import Value, as_tensor

GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # torch's gates, by their places in ONNX
USUAL = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
CLOSED = 1e4  # the sigmoid of this number is 1, and that of its negative is 0, also in float64


@operator("LSTM", "GRU", "RNN")
def recurrent(call: Operation) -> list[Value]:
    """One layer in one or both directions, [token, row, width] to [token, direction, row, width]."""
    for key in ("layout", "clip", "input_forget"):
        if call.attribute(key, 0):
            raise call.refuse(f"{key}")
    direction, hidden = call.attribute("direction", "forward"), call.attribute("hidden_size")
    x, count = call.tensor(0), 2 if direction == "bidirectional" else 1
    states = _first_states(call, x, count, hidden)
    if x.shape[-1] != call.tensor(1).shape[-1]:
        raise call.refuse(f"vectors of {x.shape[-1]} entries, where the weights have {call.tensor(1).shape[-1]}")
    lengths, names = call.optional_tensor(4), _activations(call, count)
    if lengths is None and direction != "reverse" and not _needs_steps(call, names):
        output, *last = _torch_layer(call, range(count), names[0])(x, states[0], states[1], None)
        return [output.reshape(*output.shape[:2], count, hidden).transpose(1, 2), *last]
    found = []
    for k in range(count):
        backward = direction == "reverse" or k == 1
        own = [None if state is None else state[k : k + 1] for state in states]
        layer = stepped(call, k, names[k]) if _needs_steps(call, names) else _torch_layer(call, [k], names[k])
        found.append(_one_direction(layer, x, own, lengths, backward=backward))
    return [torch.stack([y for y, *_ in found], 1), *map(torch.cat, zip(*(last for _, *last in found), strict=True))]


@operator("DynamicQuantizeLSTM")
def quantized_lstm(call: Operation) -> list[Value]:
    """An LSTM whose weights are integers, and whose inputs and states are quantized at each step."""
    x, weight, state_weight, *others = call.inputs
    weights = (as_tensor(w).mT for w in (weight, state_weight) if w is not None)
    return recurrent(replace(call, name="LSTM", inputs=(x, *weights, *others)))  # type: ignore[return-value]


def _first_states(call: Operation, x: Tensor, count: int, hidden: int) -> list[Any]:
    zero = torch.zeros(count, x.shape[1], hidden, dtype=x.dtype)
    first, cell = (zero if state is None else state for state in map(call.optional_tensor, (5, 6)))
    if list(first.shape) != [count, x.shape[1], hidden] or first.shape != cell.shape:  # torch does not check it
        raise call.refuse(f"{x.shape[1]} rows and a first state of shape {list(first.shape)}")
    return [first, cell if call.name == "LSTM" else None]


def _activations(call: Operation, count: int) -> list[list[str]]:
    """The names of the functions of each direction."""
    usual = USUAL[call.name]
    names = [str(x).lower() for x in call.attribute("activations") or usual * count]
    if call.attribute("activation_alpha") or call.attribute("activation_beta"):
        raise call.refuse("activations with numbers")
    return [names[k * len(usual) : (k + 1) * len(usual)] for k in range(count)]


def _needs_steps(call: Operation, names: Sequence[Sequence[str]]) -> bool:
    """True for a layer that torch lacks."""
    other = any(list(own) != USUAL[call.name] for own in names)
    if call.name == "RNN":
        return other and any(list(own) != ["relu"] for own in names)
    reset_first = call.name == "GRU" and not call.attribute("linear_before_reset", 0)
    return other or reset_first or any(call.optional(place) is not None for place in (7, 8))


def _one_direction(
    layer: Layer, x: Tensor, first: Sequence[Any], lengths: Tensor | None, *, backward: bool
) -> tuple[Tensor, ...]:
    """The outputs [token, row, hidden] and the last states [1, row, hidden] of one direction."""
    if lengths is None:
        y, *last = layer(x.flip(0) if backward else x, first[0], first[1], None)
        return (y.flip(0) if backward else y, *last)
    shown = (torch.arange(x.shape[0], dtype=lengths.dtype)[:, None] < lengths)[..., None]  # [token, row, 1]
    y, _, *cell = layer(reversed_rows(x, lengths) if backward else x, first[0], first[1], shown)
    y = torch.where(shown, y, 0.0)
    end = torch.clamp(lengths - 1, min=0).long()[None, :, None].expand(1, y.shape[1], y.shape[2])
    last = [torch.gather(y, 0, end), *(torch.where(lengths[None, :, None] > 0, c, 0.0) for c in cell)]
    return (reversed_rows(y, lengths) if backward else y, *last)


def _torch_layer(call: Operation, directions: Sequence[int], names: Sequence[str]) -> Layer:
    """The layer of torch with the weights of some directions."""
    weights = [w for k in directions for w in _weights(call, k)]
    options = (weights, call.optional(3) is not None, 1, 0.0, False, len(directions) > 1, False)
    function = torch.gru if call.name == "GRU" else torch.rnn_relu if names[0] == "relu" else torch.rnn_tanh

    def layer(x: Tensor, first: Tensor, cell: Tensor | None, shown: Tensor | None) -> tuple[Tensor, ...]:
        if call.name != "LSTM":
            return function(x, first, *options)
        x = torch.cat([x, (~shown).to(x.dtype)], -1) if shown is not None and _keeps_cell(call) else x
        return torch.lstm(x, (first, cell), *options)  # type: ignore[arg-type]

    return layer


def _weights(call: Operation, direction: int) -> list[Tensor]:
    """Those of one direction, with the gates in torch's order; a column more if the last cell must stay."""
    hidden, order = call.attribute("hidden_size"), GATES[call.name]

    def ordered(x: Tensor) -> Tensor:
        return torch.cat([x[gate * hidden : (gate + 1) * hidden] for gate in order])

    found = [ordered(call.tensor(1)[direction]), ordered(call.tensor(2)[direction])]
    if _keeps_cell(call):
        found[0] = torch.cat(
            [found[0], found[0].new_tensor([-CLOSED, CLOSED, 0, 0]).repeat_interleave(hidden)[:, None]], 1
        )
    if (bias := call.optional_tensor(3)) is not None:
        found += [ordered(part) for part in bias[direction].chunk(2)]
    return found


def _keeps_cell(call: Operation) -> bool:
    """True if the cell must stay after the length of a row: a column of the input closes its gates there."""
    return call.name == "LSTM" and call.optional(4) is not None and call.wants(2)
