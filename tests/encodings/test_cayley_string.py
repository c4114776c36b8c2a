from __future__ import annotations

import pytest
import torch

from orderproof import positions
from orderproof.encodings import AxialRotary, CayleyString
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


def drawn(**options: object) -> CayleyString:
    torch.manual_seed(5)
    encoding = CayleyString(8, 3, **options).requires_grad_(False)
    torch.nn.init.normal_(encoding.above)
    return encoding


def test_it_starts_as_axial() -> None:
    x, p = normal(2, 3, 6, 8), positions.grid(2, 3)
    assert torch.equal(CayleyString(8, 3).rotate(x, x, p)[0], AxialRotary(8).rotate(x, x, p)[0])


def test_the_basis_is_orthogonal_and_cayleys() -> None:
    encoding = drawn()
    basis = encoding.basis()
    one = torch.eye(8, dtype=torch.float64)
    assert torch.allclose(basis @ basis.mT, one.expand(3, 8, 8), atol=1e-13)
    assert torch.allclose(torch.linalg.det(basis), torch.ones(3, dtype=torch.float64), atol=1e-12)
    for h in range(3):
        skew = torch.zeros(8, 8, dtype=torch.float64)
        numbers = iter(encoding.above[h].double().tolist())
        for i in range(8):
            for j in range(i + 1, 8):
                skew[i, j] = next(numbers)
                skew[j, i] = -skew[i, j]
        assert torch.allclose(basis[h] @ (one + skew), one - skew, atol=1e-12)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("axes", [1, 2])
def test_its_scores_are_those_of_the_papers_two_sided_form(layout: str, axes: int) -> None:
    encoding = drawn(layout=layout, axes=axes)
    q, k = normal(1, 3, 6, 8, seed=1), normal(1, 3, 6, 8, seed=2)
    p = positions.grid(2, 3) * 9 if axes == 2 else positions.offset(4, 6)
    axial, basis = AxialRotary(8, layout=layout, axes=axes), encoding.basis()
    # P R(p) P^T x, column by column.
    both = [(axial.rotate(x @ basis, x @ basis, p)[0]) @ basis.mT for x in (q, k)]
    rotated = encoding.rotate(q, k, p)
    assert torch.allclose(rotated[0] @ rotated[1].mT, both[0] @ both[1].mT, atol=1e-12)


def test_the_basis_learns() -> None:
    encoding, x = drawn().requires_grad_(), normal(1, 3, 6, 8)
    rotated = encoding.rotate(x, normal(1, 3, 6, 8, seed=1), positions.grid(2, 3))
    (rotated[0] @ rotated[1].mT).square().sum().backward()
    assert encoding.above.grad is not None
    assert (encoding.above.grad.abs() > 1e-8).all()


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="CayleyString: heads must be an integer, 1 or more, got 0"):
        CayleyString(8, 0)
    with pytest.raises(EncodingError, match="CayleyString: head_width must be a multiple of 4 for 2 axes, got 6"):
        CayleyString(6, 1)
    x = normal(1, 2, 6, 8)
    with pytest.raises(EncodingError, match="CayleyString: q must have 3 heads, one per set of parameters; got 2"):
        CayleyString(8, 3).rotate(x, x, positions.grid(2, 3))
