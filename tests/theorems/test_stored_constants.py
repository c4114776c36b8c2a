"""The value of a stored constant follows a pattern only if each of its elements does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.theorems.facts.stored_constants import same_values

COUNT_THAT_WRAPS_AROUND = torch.arange(1024) * 2**55  # 0 again at index 512
ZEROS = torch.zeros(1024)
ZEROS_OF_BOTH_SIGNS = torch.where(torch.arange(1024) < 500, 0.0, -0.0)


class ShowsKeys(nn.Module):
    """Causal attention that also shows keys where a function of a buffer is true."""

    def __init__(self, buffer: Tensor) -> None:
        super().__init__()
        self.register_buffer("buffer", buffer)
        self.buffer: Tensor

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        stored = self.buffer[: x.shape[1]]
        shown = 1 / stored < 0 if stored.is_floating_point() else ~stored.bool() & (place > 0)
        visible = (place <= place[:, None]) | shown
        return (x @ x.mT).masked_fill(~visible, -1e9).softmax(-1) @ x


class Reciprocals(nn.Module):
    """A module in which every token meets the reciprocal of an element of a buffer."""

    def __init__(self, buffer: Tensor) -> None:
        super().__init__()
        self.register_buffer("buffer", buffer)
        self.buffer: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return torch.where((1 / self.buffer[: x.shape[1]] < 0)[:, None], -x, x)


@pytest.mark.parametrize(
    ("model", "law", "proved"),
    [
        (ShowsKeys(COUNT_THAT_WRAPS_AROUND), "causal", False),
        (ShowsKeys(torch.arange(1024)), "causal", True),
        (ShowsKeys(ZEROS_OF_BOTH_SIGNS), "causal", False),
        (ShowsKeys(ZEROS), "causal", True),
        (Reciprocals(ZEROS_OF_BOTH_SIGNS), "permutation", False),
        (Reciprocals(ZEROS), "permutation", True),
    ],
)
def test_a_theorem_needs_the_pattern_in_every_element(model: nn.Module, law: str, proved: bool) -> None:
    finding = prove(model, law, inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert finding.theorem.proved is proved


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.float8_e4m3fn, torch.complex64])
def test_zeros_of_both_signs_are_not_the_same(dtype: torch.dtype) -> None:
    zeros = torch.tensor([0.0, -0.0]).to(dtype)
    assert same_values(zeros, zeros).all()
    assert not same_values(zeros, zeros[[1, 0]]).any()


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.float8_e5m2])
def test_a_buffer_of_a_rare_dtype_has_a_theorem(dtype: torch.dtype) -> None:
    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("buffer", torch.tensor([1, 3, 2, 5] * 10).to(dtype))
            self.buffer: Tensor

        def forward(self, x: Tensor) -> Tensor:
            return x + self.buffer[: x.shape[1]].float()[:, None]

    finding = prove(Added(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert finding.theorem.proved, finding.theorem.reason
