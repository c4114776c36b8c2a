"""Spectra: what is known of the rows that a tensor is the Fourier transform of.

A tensor of frequencies reads whole rows, so its own dependence says nothing about places. A spectrum keeps, for each
place of the row before the transform, what its element depends on, until an inverse transform gives rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from orderproof.diagnosis.domain.fact import ABSENT, DependenceArray, Spectrum, compress

EXACT_TRANSFORMS_ASSUMPTION = (
    "Fourier transforms are computed without rounding (in floating point a later token changes earlier outputs by a "
    "rounding error of the size of the largest element of its row)"
)
MAX_ELEMENTS: Final = 1 << 24  # of all products of two rows; above it, a transform reads whole rows


@dataclass(frozen=True, slots=True)
class Circle:
    """The arithmetic of rows of `size` places along the dimension `dim`, taken modulo `size`."""

    dim: int
    size: int

    def convolved(self, a: DependenceArray, b: DependenceArray) -> DependenceArray | None:
        """The dependence of z[i] = sum_j a[j] b[i - j]; an absent element makes its products absent."""
        a, b = (self._whole(x) for x in (a, b))
        shape = np.broadcast_shapes(a.shape, b.shape)
        if int(np.prod(shape, dtype=np.int64)) * self.size > MAX_ELEMENTS:
            return None
        result: DependenceArray = np.full(shape, ABSENT, dtype=np.int64)
        for j in range(self.size):
            one = a.take([j], axis=self.dim)
            if (one == ABSENT).all():
                continue
            other = np.roll(b, j, axis=self.dim)
            product = np.where((one == ABSENT) | (other == ABSENT), ABSENT, np.maximum(one, other))
            result = np.maximum(result, product)
        return compress(result)

    def reversed(self, a: DependenceArray) -> DependenceArray:
        """The dependence of z[i] = a[-i]."""
        whole = self._whole(a)
        return compress(np.roll(np.flip(whole, axis=self.dim), 1, axis=self.dim))

    def _whole(self, a: DependenceArray) -> DependenceArray:
        return np.broadcast_to(a, (*a.shape[: self.dim], self.size, *a.shape[self.dim + 1 :]))


def circle_of(spectrum: Spectrum) -> Circle:
    """The arithmetic of the rows of a spectrum."""
    return Circle(spectrum.dim, spectrum.size)
