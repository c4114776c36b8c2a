"""Skew-symmetric matrices, from the numbers above their diagonals.

A^T = -A,  so that exp(A) and (1 - A)(1 + A)^-1 are rotations
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


def skew(above: Float[Tensor, "*any number"], width: int) -> Float[Tensor, "*any width width"]:
    """The matrices, in float64, whose rows above the diagonal hold these numbers one after the other."""
    rows, columns = torch.triu_indices(width, width, 1, device=above.device)
    matrix = above.new_zeros(*above.shape[:-1], width, width, dtype=torch.float64)
    matrix[..., rows, columns] = above.to(torch.float64)
    return matrix - matrix.mT
