from __future__ import annotations

import pytest
import torch

from orderproof import positions
from orderproof.blocks import AttentionInputs, Decoder
from orderproof.encodings import ALiBi, NoEncoding, Rotary, layer_patterns
from orderproof.errors import EncodingError, UsageError
from tests.encodings.examples import normal

near, far, nothing = Rotary(8), Rotary(8, base=1e6), NoEncoding()


def test_every_fourth_layer_sees_no_positions() -> None:
    assert layer_patterns.every_nth_layer(4, nothing, otherwise=near, layers=6) == (
        near,
        near,
        near,
        nothing,
        near,
        near,
    )
    assert layer_patterns.every_nth_layer(1, nothing, otherwise=near, layers=2) == (nothing, nothing)
    assert layer_patterns.every_nth_layer(9, nothing, otherwise=near, layers=2) == (near, near)


def test_every_fourth_is_the_default_of_transformers_llama4() -> None:
    from transformers.models.llama4.configuration_llama4 import Llama4TextConfig

    flags = Llama4TextConfig(num_hidden_layers=10).no_rope_layers
    assert [encoding is near for encoding in layer_patterns.every_nth_layer(4, nothing, otherwise=near, layers=10)] == [
        *map(bool, flags)
    ]


def test_a_pattern_is_repeated() -> None:
    assert layer_patterns.repeat_pattern([near, far, nothing], layers=5) == (near, far, nothing, near, far)


def test_a_stack_gives_each_layer_its_own() -> None:
    torch.manual_seed(0)
    stack, x, p = Decoder(32, 4, 3).double(), normal(2, 6, 32), positions.arange(6)
    each = (near, nothing, ALiBi(4))
    expected = x
    for layer, encoding in zip(stack.layers, each, strict=True):
        expected = layer(expected, AttentionInputs(encoding=encoding, positions=p))
    assert torch.equal(stack(x, p, encoding=each), stack.last_norm(expected))
    assert torch.equal(stack(x, p, encoding=[near] * 3), stack(x, p, encoding=near))
    assert not torch.allclose(stack(x, p, encoding=each), stack(x, p, encoding=each[::-1]), atol=1e-3)
    with pytest.raises(UsageError, match="encoding: expected one for all layers or one per layer, 3; got 2"):
        stack(x, p, encoding=each[:2])


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="every_nth_layer: n must be an integer, 1 or more, got 0"):
        layer_patterns.every_nth_layer(0, near, otherwise=far, layers=3)
    with pytest.raises(EncodingError, match="repeat_pattern: layers must be an integer, 1 or more, got 0"):
        layer_patterns.repeat_pattern([near], layers=0)
    with pytest.raises(EncodingError, match="repeat_pattern: expected one encoding or more, got none"):
        layer_patterns.repeat_pattern([], layers=3)
