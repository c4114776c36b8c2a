"""Recurrent layers: directions, lengths, states, peepholes and activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.sweep.draw import MICROSOFT, Call, Draw, drawn

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": ["Sigmoid", "Relu", "Softsign"], "GRU": ["Softsign", "Tanh"], "RNN": ["Relu"]}


@drawn(*GATES)
def layer(draw: Draw) -> Call:
    """A layer of one direction or both."""
    tokens, rows, width, hidden = draw.size(1), draw.size(1), draw.size(1), draw.size(1)
    gates, direction = GATES[draw.name], draw.pick("forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if draw.name == "GRU":
        attributes |= draw.some(linear_before_reset=draw.flag())
    if draw.number(0, 3) == 0:
        attributes["activations"] = ACTIVATIONS[draw.name] * count
    lengths = draw.maybe(draw.integers(0, tokens, rows, kind="int32"))
    x, states = (
        draw.tensor(tokens, rows, width),
        [draw.tensor(count, rows, hidden) for _ in range(1 + (draw.name == "LSTM"))],
    )
    weights = [draw.tensor(count, gates * hidden, width), draw.tensor(count, gates * hidden, hidden)]
    arrays: list[Array | None] = [x, *weights, draw.maybe(draw.tensor(count, 2 * gates * hidden)), lengths]
    arrays += [draw.maybe(state) for state in states]
    arrays += [draw.tensor(count, 3 * hidden)] if draw.name == "LSTM" and draw.number(0, 2) == 0 else []
    outputs = draw.pick(("y", "h", "c"), ("y", "h")) if draw.name == "LSTM" else ("y", "h")
    return Call(arrays, attributes, outputs, draw.pick((), (1, 2, 3)))


@drawn("DynamicQuantizeLSTM", domain=MICROSOFT, types={"T": ("float",), "T1": ("int32",), "T2": ("int8", "uint8")})
def of_integers(draw: Draw) -> Call:
    """Weights of integers with one scale for a direction, or one for each column; of one row, whose threads agree."""
    tokens, width, hidden = draw.size(1), draw.size(1), draw.size(1)
    direction, wide = draw.pick("forward", "reverse", "bidirectional"), draw.pick([], [4 * hidden])
    count, limits = 1 + (direction == "bidirectional"), np.iinfo(draw.full(of="T2").dtype)
    arrays: list[Array | None] = [draw.tensor(tokens, 1, width)]
    arrays += [draw.full(count, size, 4 * hidden, of="T2") for size in (width, hidden)]
    arrays += [draw.tensor(count, 8 * hidden), None, None, None, None]
    for _ in range(2):
        zero = np.full((count, *wide), 0 if limits.min else 128, limits.dtype)
        arrays += [np.asarray(draw.scale(count, *wide) / 10, np.float32), zero]
    attributes = {"hidden_size": hidden, "direction": direction}
    return Call(arrays, attributes, ("y", "h", "c"), (1, 2, 8, 9, 10, 11))
