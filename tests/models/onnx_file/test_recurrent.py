"""Recurrent layers give what ONNX Runtime gives: directions, lengths, states, peepholes and activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orderproof.errors import SubjectError
from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.runtime import both_results, check_same

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": ["Sigmoid", "Relu", "Softsign"], "GRU": ["Softsign", "Tanh"], "RNN": ["Relu"]}


def drawn(name: str, seed: int) -> tuple[list[Array | None], dict[str, Any], tuple[str, ...]]:
    """Inputs, attributes and outputs of a layer."""
    draw = np.random.default_rng(seed)

    def real(*shape: int) -> Array:
        return draw.normal(size=shape).astype(np.float32)

    tokens, rows, width, hidden, gates = (int(draw.integers(1, n)) for n in (7, 4, 5, 5, 2))
    gates = GATES[name]
    direction = str(draw.choice(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if name == "GRU":
        attributes["linear_before_reset"] = int(draw.integers(2))
    if draw.integers(4) == 0:
        attributes["activations"] = ACTIVATIONS[name] * count
    bias = real(count, 2 * gates * hidden) if draw.integers(2) else None
    lengths = draw.integers(0, tokens + 1, rows).astype(np.int32) if draw.integers(3) else None
    states = [real(count, rows, hidden) if draw.integers(2) else None for _ in range(2 if name == "LSTM" else 1)]
    peepholes = [real(count, 3 * hidden)] if name == "LSTM" and draw.integers(3) == 0 else []
    weights = [real(count, gates * hidden, width), real(count, gates * hidden, hidden)]
    return [real(tokens, rows, width), *weights, bias, lengths, *states, *peepholes], attributes, ("y", "h", "c")


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("seed", range(24))
def test_a_layer_gives_what_the_runtime_gives(name: str, seed: int) -> None:
    arrays, attributes, outputs = drawn(name, seed)
    outputs = outputs if name == "LSTM" else outputs[:2]
    outputs = outputs if seed % 3 else outputs[:2]
    check_same(both_results(name, arrays, attributes, outputs=outputs))


@pytest.mark.parametrize("seed", range(8))
def test_an_lstm_of_integers_gives_what_the_runtime_gives(seed: int) -> None:
    draw, (tokens, rows, width, hidden) = np.random.default_rng(seed), (4, 1, 3, 5)
    direction = ["forward", "reverse", "bidirectional"][seed % 3]
    count, wide = 1 + seed % 3 // 2, [] if seed % 2 else [4 * hidden]
    arrays: list[Array | None] = [draw.normal(size=(tokens, rows, width)).astype(np.float32)]
    arrays += [draw.integers(-127, 128, (count, size, 4 * hidden)).astype(np.int8) for size in (width, hidden)]
    arrays += [draw.normal(size=(count, 8 * hidden)).astype(np.float32), None, None, None, None]
    for _ in range(2):
        arrays += [draw.uniform(0.001, 0.01, (count, *wide)).astype(np.float32), np.zeros((count, *wide), np.int8)]
    attributes = {"hidden_size": hidden, "direction": direction}
    options: dict[str, Any] = {"domain": "com.microsoft", "outputs": ("y", "h", "c"), "stored": (1, 2, 8, 9, 10, 11)}
    check_same(both_results("DynamicQuantizeLSTM", arrays, attributes, **options))


def test_what_has_no_translation_is_refused() -> None:
    arrays, attributes, _ = drawn("RNN", 0)
    with pytest.raises(SubjectError, match="RNN is not supported with clip"):
        both_results("RNN", arrays, attributes | {"clip": 1.0})
    with pytest.raises(SubjectError, match="RNN is not supported with activation affine"):
        both_results("RNN", arrays, attributes | {"activations": ["Affine"] * 2, "direction": "bidirectional"})
