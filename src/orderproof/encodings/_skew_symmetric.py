"""Skew-symmetric matrices from their upper triangles.

A^T = -A,  so exp(A) and (1 - A)(1 + A)^-1 are rotations
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


def skew_symmetric(upper: Float[Tensor, "*any number"], width: int) -> Float[Tensor, "*any width width"]:
    """The float64 matrices with these entries above the diagonal, row by row."""
    rows, columns = torch.triu_indices(width, width, 1, device=upper.device)
    matrix = upper.new_zeros(*upper.shape[:-1], width, width, dtype=torch.float64)
    matrix[..., rows, columns] = upper.to(torch.float64)
    return matrix - matrix.mT
