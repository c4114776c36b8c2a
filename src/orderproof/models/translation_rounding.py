"""How far two correct programs of one model may differ: units in the last place, and the gaps between outputs."""

from __future__ import annotations

import torch
from torch import Tensor


def unit(x: Tensor) -> float:
    """The unit in the last place of a number near 1; zero for integers."""
    return torch.finfo(x.dtype).eps if x.is_floating_point() or x.is_complex() else 0.0


def largest(x: Tensor) -> float:
    """The largest finite size of a number of a tensor; zero without one."""
    finite = _parts(x)
    finite = finite[finite.isfinite()]
    return float(finite.double().abs().max()) if finite.numel() else 0.0


def gap(x: Tensor, other: Tensor) -> float:
    """The largest difference; infinite between two shapes, and between a number and none."""
    if x.shape != other.shape:
        return float("inf")
    x, other = _parts(x).double(), _parts(other).double()
    same = (x == other) | (x.isnan() & other.isnan())
    gaps = torch.where(same, 0.0, (x - other).abs()).nan_to_num(nan=float("inf"))
    return float(gaps.max()) if gaps.numel() else 0.0


def _parts(x: Tensor) -> Tensor:
    """Real numbers: the two parts of complex ones."""
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
