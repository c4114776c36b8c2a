"""torch reads of a triangular system what the lemma says it reads."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

FLAGS = list(product([False, True], repeat=3))


def solution(system: Tensor, right: Tensor, *, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    """The solution X of A X = B, or of X A = B."""
    return torch.linalg.solve_triangular(
        system, right if left else right.mT, upper=upper, left=left, unitriangular=unitriangular
    )


@pytest.mark.parametrize(("upper", "left", "unitriangular"), FLAGS)
@pytest.mark.parametrize("rows", [3, 70])
def test_elements_outside_the_triangle_are_not_read(rows: int, upper: bool, left: bool, unitriangular: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    system = torch.randn(2, rows, rows, generator=generator, dtype=torch.float64) / rows + torch.eye(rows)
    right = torch.randn(2, rows, 2, generator=generator, dtype=torch.float64)
    read = torch.ones(rows, rows, dtype=torch.bool).tril(-int(unitriangular))
    hidden = system.masked_fill(~(read.mT if upper else read), torch.nan)
    flags = {"upper": upper, "left": left, "unitriangular": unitriangular}
    expected = solution(system, right, **flags)
    assert expected.isfinite().all()
    assert torch.equal(solution(hidden, right, **flags), expected)


@pytest.mark.parametrize(("upper", "left", "unitriangular"), FLAGS)
def test_a_row_does_not_read_the_rows_that_are_solved_after_it(upper: bool, left: bool, unitriangular: bool) -> None:
    """NaN at row 1 of the right-hand side, and in row 1 of the system that it is solved with."""
    system, right = torch.eye(3) + 1, torch.ones(3, 1)
    right[1] = torch.nan
    flags = {"upper": upper, "left": left, "unitriangular": unitriangular}
    found = solution(system, right, **flags).reshape(-1).isnan()
    assert found.tolist() == ([False, True, True] if upper != left else [True, True, False])
    right[1] = 1
    (system if left else system.mT)[1] = torch.nan
    assert solution(system, right, **flags).reshape(-1).isnan().tolist() == found.tolist()
