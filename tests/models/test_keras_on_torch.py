"""Keras on the backend torch: a model of Keras is a module of torch. Skipped where Keras is not installed."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.records.audit import Finding

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed"),
]
WIDTH, TOKENS = 8, 7


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "torch"))
    library = importlib.import_module("keras")
    if library.backend.backend() != "torch":
        pytest.skip("keras was imported with another backend")
    library.utils.set_random_seed(0)
    return library


def block(keras: Any, *, causal: bool) -> nn.Module:
    """A functional model of one block with attention."""
    x = keras.Input((None, WIDTH))
    y = keras.layers.LayerNormalization()(x)
    y = x + keras.layers.MultiHeadAttention(2, WIDTH // 2)(y, y, use_causal_mask=causal)
    model: nn.Module = keras.Model(x, y + keras.layers.Dense(WIDTH, activation="gelu")(y))
    return model


def causality(model: nn.Module) -> Finding:
    report = audit(model.eval(), inputs=torch.randn(2, TOKENS, WIDTH), laws=("causal",), expect={"causal": "any"})
    return report.findings[0]


def test_causal_attention_is_proved_for_every_length(keras: Any) -> None:
    finding = causality(block(keras, causal=True))
    assert finding.verdict == "proved", finding.reason
    assert finding.theorem is not None
    assert finding.theorem.proved, finding.theorem.reason


def test_attention_without_a_mask_is_refuted(keras: Any) -> None:
    assert causality(block(keras, causal=False)).verdict == "refuted"


def test_a_convolution_is_causal_with_its_padding(keras: Any) -> None:
    for padding, expected in (("causal", "proved"), ("same", "refuted")):
        model = keras.Sequential([keras.Input((None, WIDTH)), keras.layers.Conv1D(WIDTH, 3, padding=padding)])
        assert causality(model).verdict == expected
