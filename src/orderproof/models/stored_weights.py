"""Which tensors of a stored program count as weights: a file or a traced program does not say."""

from __future__ import annotations

from torch import Tensor

from orderproof.number_limits import ORDINARY_LIMIT


def is_weight(tensor: Tensor) -> bool:
    """True if a tensor counts as weights, which a proof may not read.

    A constant of the program is one number, a mask (two values, numbers that are large or infinite) or a triangle.
    """
    if not tensor.is_floating_point() or tensor.ndim == 0 or tensor.numel() < 2:
        return False
    if not bool(tensor.isfinite().all()) or float(tensor.abs().max()) >= ORDINARY_LIMIT:
        return False
    square = tensor.squeeze()
    if square.ndim < 2:
        return True
    two_values = bool(((tensor == tensor.min()) | (tensor == tensor.max())).all())
    size = square.shape[-1]
    triangle = square.shape[-2] == size and any(not bool(half.any()) for half in (square.triu(1), square.tril(-1)))
    return not two_values and not triangle
