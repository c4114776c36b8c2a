"""Modules with tensors that parts of torch do not know, and rules that once failed with an error."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove


class Bags(nn.Module):
    """Bags of embeddings whose offsets do not increase: torch sorts them."""

    def __init__(self, offsets: list[int]) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(2, 4, mode="max")
        self.register_buffer("offsets", torch.tensor(offsets))

    def forward(self, x: Tensor) -> Tensor:
        ids = (x[..., 0] > 0).long().reshape(-1)[:6]
        bags: Tensor = self.bags(ids, self.offsets)
        return x + x.mean(1, keepdim=True) + bags[1]


class Held(nn.Module):
    """A buffer that the outputs are computed with."""

    def __init__(self, held: Tensor) -> None:
        super().__init__()
        self.register_buffer("held", held)

    def forward(self, x: Tensor) -> Tensor:
        held = self.held.to_dense() if self.held.layout is torch.sparse_coo else self.held.to(torch.complex64).real
        return x + x.mean(1, keepdim=True) + held.sum()


class Longer(nn.Module):
    """A transposed convolution of width one, whose outputs are one more than its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.ConvTranspose1d(4, 4, 1, dilation=2, output_padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.map(x.mT)[..., 1:].mT


class Parts(nn.Module):
    """Mantissas and exponents: an operator with two results."""

    def forward(self, x: Tensor) -> Tensor:
        mantissa, exponent = torch.frexp(x)
        return mantissa + exponent


def test_bags_at_offsets_that_do_not_increase_have_no_lemma() -> None:
    finding = prove(Bags([0, 4, 1, 5, 2]).eval(), "permutation", inputs=torch.randn(2, 6, 4), token_axis=1, length=6)
    assert finding.verdict == "refuted"


def test_bags_one_after_the_other_are_followed() -> None:
    finding = prove(Bags([0, 2, 4]).eval(), "batch", inputs=torch.randn(2, 6, 4), token_axis=1, length=6)
    assert finding.verdict == "refuted"  # the ids of the first row are those of each bag
    assert "do not begin one after the other" not in finding.reason


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental", "ignore:Sparse")
@pytest.mark.parametrize("kind", ["sparse", "complex32"])
def test_a_buffer_of_a_rare_kind_is_no_internal_error(kind: str) -> None:
    held = torch.eye(6).to_sparse() if kind == "sparse" else torch.ones(4, dtype=torch.complex32)
    finding = prove(Held(held).eval(), "permutation", inputs=torch.randn(2, 6, 4))
    assert "internal error" not in finding.reason
    assert finding.verdict in ("proved", "undecided")


def test_outputs_beyond_the_windows_of_a_convolution_do_not_move_with_the_tokens() -> None:
    finding = prove(Longer().eval(), "permutation", inputs=torch.randn(2, 6, 4))
    assert finding.verdict == "refuted"


def test_an_operator_with_two_results_is_no_internal_error() -> None:
    theorem = prove(Parts().eval(), "causal", inputs=torch.randn(2, 6, 4)).theorem
    assert theorem is None or "internal error" not in theorem.reason
