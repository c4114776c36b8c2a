"""Normalisation, feed-forward and residual: the parts without interaction of tokens."""

from __future__ import annotations

import math

import pytest
import torch

from orderproof.blocks import AddNorm, FeedForward, LayerNorm, RMSNorm
from orderproof.errors import UsageError
from tests.encodings.examples import normal


def test_layer_norm_is_its_formula() -> None:
    norm, x = LayerNorm(16).double(), 3 * normal(2, 5, 16) + 1
    norm.gain.data, norm.shift.data = normal(16, seed=1), normal(16, seed=2)
    centred = x - x.mean(-1, keepdim=True)
    expected = norm.gain * centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() + norm.shift
    assert torch.allclose(norm(x), expected, atol=1e-13)


def test_rms_norm_is_its_formula() -> None:
    norm, x = RMSNorm(16).double(), 3 * normal(2, 5, 16) + 1
    norm.gain.data = normal(16, seed=1)
    expected = norm.gain * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    assert torch.allclose(norm(x), expected, atol=1e-13)


def test_feed_forward_is_two_layers_with_a_gelu_between() -> None:
    block, x = FeedForward(4, 8).double().requires_grad_(False), normal(1, 1, 4)
    hidden = [float(w @ x[0, 0] + b) for w, b in zip(block.widen.weight, block.widen.bias, strict=True)]
    bent = torch.tensor([t * (1 + math.erf(t / math.sqrt(2))) / 2 for t in hidden], dtype=torch.float64)
    assert torch.allclose(block(x)[0, 0], block.narrow.weight @ bent + block.narrow.bias, atol=1e-14)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_the_norm_is_before_the_sublayer_or_after_the_sum(norm: str) -> None:
    x = normal(2, 3, 8)
    before, after = (AddNorm(8, norm=norm, norm_placement=placement).double() for placement in ("before", "after"))
    assert torch.equal(before(x, torch.sin), x + before.norm(x).sin())
    assert torch.equal(after(x, torch.sin), after.norm(x + x.sin()))


def test_unknown_options_are_rejected() -> None:
    with pytest.raises(UsageError, match="norm: expected 'layer' or 'rms', got 'batch'"):
        AddNorm(8, norm="batch")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="norm_placement: expected 'before' or 'after', got 'pre'"):
        AddNorm(8, norm_placement="pre")  # type: ignore[arg-type]
