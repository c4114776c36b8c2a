"""Convolutions by Fourier transforms: proved causal if and only if no later token reaches an earlier one.

The truth is the Jacobian in float64, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from orderproof.diagnosis.domain.fact import ABSENT
from orderproof.diagnosis.domain.spectrum import EXACT_TRANSFORMS_ASSUMPTION, Circle
from tests.auditing.law_pairs import finding_about_the_output
from tests.pairs import first_soon

fft = torch.fft
TOKENS, WIDTH = 6, 4
X = torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(3))


class Filtered(nn.Module):
    """Tokens along the last axis, filtered with kernels of `taps` places."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], taps: int = TOKENS) -> None:
        super().__init__()
        self.function = function
        self.kernel = nn.Parameter(torch.randn(WIDTH, taps, generator=torch.Generator().manual_seed(4)))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] != TOKENS:
            raise ValueError(f"expected {TOKENS} tokens")
        return self.function(x.mT, self.kernel).mT


def is_causal(module: nn.Module) -> bool:
    """No output depends on a later token."""
    module = module.double()
    jacobian = torch.autograd.functional.jacobian(module, X.double()[:1])
    reached = jacobian.abs().amax(dim=(0, 2, 3, 5)) > 1e-9  # [output token, input token]
    module.float()
    return not bool(reached.triu(1).any())


def convolved(size: int, **options: object) -> Callable[[Tensor, Tensor], Tensor]:
    """A circular convolution with this many places."""

    def function(x: Tensor, kernel: Tensor) -> Tensor:
        product = fft.rfft(x, n=size) * fft.rfft(kernel, n=size)
        return fft.irfft(product, n=size, **options)[..., : x.shape[-1]]

    return function


@pytest.mark.parametrize("taps", first_soon([3, 1, TOKENS]))
@pytest.mark.parametrize("size", [TOKENS, TOKENS + 1, TOKENS + 2, 2 * TOKENS - 2, 2 * TOKENS - 1, 2 * TOKENS, 16])
def test_a_circle_is_large_enough_or_not(size: int, taps: int) -> None:
    module = Filtered(convolved(size), taps)
    assert is_causal(module) == (size >= TOKENS + taps - 1 or taps == 1)
    finding = finding_about_the_output(module, "causal", X)
    assert (finding.verdict == "proved") == is_causal(module)


def reversed_kernel(x: Tensor, kernel: Tensor) -> Tensor:
    """Mega: a product with the conjugate, then the end of the rotated rows."""
    size, tokens = 16, x.shape[-1]
    product = fft.rfft(x, n=size) * fft.rfft(kernel, n=size).conj()
    return fft.irfft(product, n=size).roll(-1, dims=-1)[..., size - tokens :]


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "complex": lambda x, k: fft.ifft(fft.fft(x, n=12) * fft.fft(k, n=12), n=12).real[..., :6],
    "padded": lambda x, k: fft.irfft(fft.rfft(nn.functional.pad(x, (0, 6))) * fft.rfft(k, n=12), n=12)[..., :6],
    "padded in front": lambda x, k: fft.irfft(fft.rfft(nn.functional.pad(x, (6, 0))) * fft.rfft(k, n=12))[..., 6:],
    "padded in front, first rows": lambda x, k: fft.irfft(fft.rfft(nn.functional.pad(x, (6, 0))) * fft.rfft(k, n=12))[
        ..., :6
    ],
    "scaled": lambda x, k: fft.irfft(fft.rfft(x, n=12) * (fft.rfft(k, n=12) / 12), n=12, norm="forward")[..., :6],
    "by a gate of each row": lambda x, k: fft.irfft(
        fft.rfft(x, n=12) * fft.rfft(k, n=12) * k.sum(-1, keepdim=True), n=12
    )[..., :6],
    "by a gate of all tokens": lambda x, k: fft.irfft(
        fft.rfft(x, n=12) * fft.rfft(k, n=12) * x.sum(-1, keepdim=True), n=12
    )[..., :6],
    "by weights of frequencies": lambda x, k: fft.irfft(fft.rfft(x, n=12) * torch.arange(7.0), n=12)[..., :6],
    "by a complex number": lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(k, n=12) * 1j, n=12)[..., :6],
    "some frequencies": lambda x, k: fft.irfft(fft.rfft(x, n=12)[..., :4] * fft.rfft(k, n=12)[..., :4], n=12)[..., :6],
    "other size of the inverse": lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(k, n=12), n=14)[..., :6],
    "odd size, inverse without it": lambda x, k: fft.irfft(fft.rfft(x, n=13) * fft.rfft(k, n=13))[..., :6],
    "three factors": lambda x, k: fft.irfft(fft.rfft(x, n=18) * fft.rfft(k, n=18) * fft.rfft(k, n=18), n=18)[..., :6],
    "three factors, too small": lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(k, n=12) * fft.rfft(k, n=12), n=12)[
        ..., :6
    ],
    "of both directions": lambda x, k: fft.irfft(
        fft.rfft(x, n=12) * (fft.rfft(k, n=12) + fft.rfft(k, n=12).conj()), n=12
    )[..., :6],
    "sum": lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(k, n=12) + fft.rfft(x, n=12), n=12)[..., :6],
    "labels": lambda x, k: fft.irfft(torch.einsum("bcl,cl->bcl", fft.rfft(x, n=12), fft.rfft(k, n=12)), n=12)[..., :6],
    "labels of two heads": lambda x, k: fft.irfft(
        torch.einsum("bcl,hcl->bhl", fft.rfft(x, n=12), fft.rfft(k, n=12).unsqueeze(0)), n=12
    )[..., :6].expand(-1, 4, -1),
    "labels, frequencies summed": lambda x, k: (
        torch.einsum("bcl,cl->bc", fft.rfft(x, n=12), fft.rfft(k, n=12)).abs()[..., None] * x
    ),
    "squared": lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(x, n=12), n=12)[..., :6],
    "squared, too small": lambda x, k: fft.irfft(fft.rfft(x, n=8) * fft.rfft(x, n=8), n=8)[..., :6],
    "magnitudes": lambda x, k: fft.irfft(fft.rfft(x, n=12).abs() * fft.rfft(k, n=12), n=12)[..., :6],
    "tokens correlated with themselves": lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(x, n=12).conj())[..., :6],
    "reversed kernel": reversed_kernel,
    "viewed": lambda x, k: fft.irfft(
        fft.rfft(x, n=12).reshape(-1, 1, WIDTH, 7, 1) * fft.rfft(k, n=12).reshape(1, WIDTH, 7, 1), n=12, dim=3
    ).flatten(3)[:, 0, :, :6],
    "viewed, channels as places": lambda x, k: (
        fft.irfft(fft.rfft(x, n=12).reshape(-1, 7, WIDTH) * fft.rfft(k, n=12).reshape(7, WIDTH), n=12, dim=1)[:, :6].mT
    ),
    "viewed, two rows as one": lambda x, k: fft.irfft(
        fft.rfft(x, n=12).reshape(-1, 2, 14) * fft.rfft(k, n=12).reshape(2, 14), n=26
    )[..., :6].repeat(1, 2, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_transforms(name: str) -> None:
    module = Filtered(PROGRAMS[name])
    finding = finding_about_the_output(module, "causal", X)
    assert (finding.verdict == "proved") == is_causal(module)
    if finding.verdict == "proved":
        assert EXACT_TRANSFORMS_ASSUMPTION in finding.scope.assumptions


def test_rows_of_other_lines_stay_apart() -> None:
    finding = finding_about_the_output(Filtered(convolved(TOKENS)), "batch", X)
    assert finding.verdict == "proved"
    mixed = Filtered(lambda x, k: fft.irfft(fft.rfft(x, n=12) * fft.rfft(x.flip(0), n=12), n=12)[..., :6])
    assert finding_about_the_output(mixed, "batch", X).verdict == "refuted"


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_the_dependence_of_a_circular_convolution(size: int) -> None:
    """Against products of polynomials modulo x^n - 1, element by element."""
    generator = np.random.default_rng(size)
    for _ in range(40):
        a, b = (generator.integers(ABSENT, 4, (1, size)) for _ in range(2))
        found = np.broadcast_to(Circle(1, size).convolved(a, b), (1, size))[0]
        expected = [
            max(
                (max(a[0, j], b[0, i - j]) for j in range(size) if a[0, j] != ABSENT and b[0, i - j] != ABSENT),
                default=ABSENT,
            )
            for i in range(size)
        ]
        assert found.tolist() == expected
        back = np.broadcast_to(Circle(1, size).reversed(a), (1, size))[0]
        assert back.tolist() == [a[0, -i % size] for i in range(size)]


def test_complex_numbers_without_a_transform() -> None:
    """A complex literal, a cast to complex numbers and a product of them have no spectrum."""

    def rotated(x: Tensor, kernel: Tensor) -> Tensor:
        angles = torch.arange(3.0).to(torch.complex64) * 1j
        turned = x[:, :2].to(torch.complex64).conj() * angles[:2, None].exp()
        return torch.view_as_real(turned).flatten(2)[..., :TOKENS].repeat(1, 2, 1) + x.cumsum(-1)

    finding = finding_about_the_output(Filtered(rotated), "batch", X)
    assert finding.verdict == "proved"
