"""Complex outputs: both parts count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.recording.execution import differing_parts, relative_difference

MANY = 100


class Complex(nn.Module):
    """A linear layer as the real part, and something else as the imaginary one."""

    def __init__(self, imaginary: Callable[[nn.Module, Tensor], Tensor], *, real: bool = True) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.imaginary, self.real, self.calls = imaginary, real, 0

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return torch.complex(y if self.real else torch.zeros_like(y), self.imaginary(self, y))


def counted(module: nn.Module, y: Tensor) -> Tensor:
    module.calls += 1  # type: ignore[operator]
    return y * module.calls


REFUTED: dict[str, tuple[str, nn.Module]] = {
    "causal": ("causal", Complex(lambda _, y: y.flip(1))),
    "causal without a real part": ("causal", Complex(lambda _, y: y.flip(1), real=False)),
    "causal in long calls": ("causal", Complex(lambda _, y: y.flip(1) if y.shape[1] > MANY else y)),
    "batch": ("batch", Complex(lambda _, y: y.flip(0))),
    "permutation": ("permutation", Complex(lambda _, y: y.cumsum(1))),
}


@pytest.mark.filterwarnings("error:Casting complex values")
@pytest.mark.parametrize("name", REFUTED)
def test_an_imaginary_part_violates_a_law(name: str) -> None:
    law, module = REFUTED[name]
    finding = prove(module.eval(), law, inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert finding.witness.expected_value != finding.witness.actual_value


@pytest.mark.filterwarnings("error:Casting complex values")
@pytest.mark.parametrize("imaginary", [counted, lambda _, y: torch.rand_like(y)], ids=["state", "chance"])
def test_an_imaginary_part_that_changes_from_call_to_call_is_refuted(
    imaginary: Callable[[nn.Module, Tensor], Tensor],
) -> None:
    report = audit(Complex(imaginary).eval(), laws=["stateless"], inputs=torch.randn(2, 7, 6))
    assert [f.verdict for f in report.findings] == ["refuted"]


def test_a_causal_imaginary_part_is_proved() -> None:
    finding = prove(Complex(lambda _, y: y.cumsum(1)).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "proved"


def test_the_difference_of_complex_tensors() -> None:
    a = torch.tensor([1 + 1j, 2 - 1j])
    assert relative_difference(a, a) == 0
    assert relative_difference(a, a.conj()) == pytest.approx(2 / 5**0.5)
    assert relative_difference(a, torch.tensor([complex("nan"), 2 - 1j])) == float("inf")
    real, imaginary = differing_parts(a, a.conj())
    assert real.tolist() == [1, -1]
    assert imaginary.tolist() == [-1, 1]
