"""Models that move axes with einops: what it asks of sizes fixes none of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orderproof import prove

einops = pytest.importorskip("einops", reason="the extra bench (x-transformers, which needs einops) is not installed")


class Attention(nn.Module):
    """Causal attention of two heads, or attention that sees all tokens."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = einops.rearrange(self.qkv(x), "b n (three h d) -> three b h n d", three=3, h=2)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        weights = einops.reduce(q, "b h n d -> b n h 1", "mean")
        mixed = einops.einsum(mixed, weights, "b h n d, b n h one -> b n h d")
        return x + einops.rearrange(mixed, "b n h d -> b n (h d)")


def test_causality_of_a_model_with_einops_is_a_theorem() -> None:
    finding = prove(Attention(causal=True).eval(), "causal", inputs=torch.randn(2, 7, 8))
    assert finding.theorem is not None
    assert finding.theorem.proved


def test_a_model_with_einops_that_looks_ahead_is_refuted() -> None:
    assert prove(Attention(causal=False).eval(), "causal", inputs=torch.randn(2, 7, 8)).verdict == "refuted"
