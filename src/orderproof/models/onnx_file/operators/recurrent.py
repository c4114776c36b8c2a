"""Recurrent layers, whose gates torch has in another order."""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.values import Value

GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # torch's gates, by their places in ONNX


@operator("LSTM", "GRU", "RNN")
def recurrent(call: Operation) -> list[Value]:
    """One layer in one or both directions, [token, row, width] to [token, direction, row, width]."""
    direction = call.attribute("direction", "forward")
    if call.optional(4) is not None or call.attribute("layout", 0) or call.optional(7) is not None:
        raise call.refuse("lengths of sequences, rows first, or peepholes")
    if direction == "reverse" or (call.name == "GRU" and not call.attribute("linear_before_reset", 0)):
        raise call.refuse("this direction, or a reset before the product")
    if call.attribute("activations") and [str(x).lower() for x in call.attribute("activations")] != _activations(call):
        raise call.refuse("these activations")
    x, both = call.tensor(0), direction == "bidirectional"
    hidden, count = call.attribute("hidden_size"), 2 if both else 1
    weights = [w for k in range(count) for w in _weights(call, k, hidden)]
    zero = torch.zeros(count, x.shape[1], hidden, dtype=x.dtype)
    first, cell = (zero if state is None else state for state in map(call.optional_tensor, (5, 6)))
    if list(first.shape) != [count, x.shape[1], hidden] or first.shape != cell.shape:  # torch does not check it
        raise call.refuse(f"{x.shape[1]} rows and a first state of shape {list(first.shape)}")
    if x.shape[-1] != call.tensor(1).shape[-1]:
        raise call.refuse(f"vectors of {x.shape[-1]} entries, where the weights have {call.tensor(1).shape[-1]}")
    has_bias = call.optional(3) is not None
    options = (weights, has_bias, 1, 0.0, False, both, False)
    if call.name == "LSTM":
        output, *states = torch.lstm(x, (first, cell), *options)
    else:
        output, *states = (torch.gru if call.name == "GRU" else torch.rnn_tanh)(x, first, *options)
    return [output.reshape(*output.shape[:2], count, hidden).transpose(1, 2), *states]


def _activations(call: Operation) -> list[str]:
    usual = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}[call.name]
    return usual * (2 if call.attribute("direction", "forward") == "bidirectional" else 1)


def _weights(call: Operation, direction: int, hidden: int) -> list[Tensor]:
    """The weights and biases of one direction, with the gates in torch's order."""
    matrices = [call.tensor(1)[direction], call.tensor(2)[direction]]
    bias = call.optional_tensor(3)
    count = len(GATES[call.name]) * hidden
    vectors = [] if bias is None else [bias[direction][:count], bias[direction][count:]]
    return [
        torch.cat([part.narrow(0, gate * hidden, hidden) for gate in GATES[call.name]]) for part in matrices + vectors
    ]
