"""A fact: the statement of a certificate about one tensor in the two runs that a law compares.

`moves` says how the second run's tensor is permuted relative to the first. `dependence` bounds, for each element, the
cases of the law that can change it. `low` and `high` bound its value in both runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from orderproof.recheck.reading import digest_of

Array: TypeAlias = NDArray[Any]  # of bool, int, float or complex numbers
BoolArray: TypeAlias = NDArray[np.bool_]
Permutation: TypeAlias = tuple[int, ...]
Move: TypeAlias = str | tuple[Permutation, ...]  # IDENTITY, UNIFORM, or one permutation for each generator

IDENTITY = "identity"  # elements along this dimension stay where they are
UNIFORM = "uniform"  # the tensor is constant along this dimension, so that any permutation leaves it unchanged
INDEPENDENT = -1  # dependence of an element that no case changes
ABSENT = -2  # of an element that is zero in both runs, in a row that is transformed
TOP = 2**40  # dependence of an element that any case may change

INF = math.inf
ORDINARY_LIMIT = 6e4  # an ordinary number is smaller than this: below the largest float16
DIMENSION_LABELS = "0123456789"  # one einsum label for each dimension


class IndexCoverage(NamedTuple):
    """Positions that an index tensor contains for certain."""

    dim: int  # the dimension that it indexes
    covered: BoolArray


class Spectrum(NamedTuple):
    """A tensor is the Fourier transform, in both runs, of rows that are described here."""

    dim: int
    size: int  # places of a row
    half: bool  # the rows are real, and half of the frequencies are kept
    dependence: Array  # of the elements of the rows; ABSENT if an element is zero


@dataclass(frozen=True)
class Fact:
    """One tensor. `dependence`, `low` and `high` have the full size or size 1 along each dimension.

    The symbolic bounds -1 and 1 stand for any ordinary number. Infinite bounds allow any value, NaN too.
    """

    shape: tuple[int, ...]
    dtype: str
    moves: tuple[Move, ...]
    dependence: Array
    low: Array
    high: Array
    is_constant: bool = False  # it does not depend on the inputs
    constant_value: Tensor | None = None  # the value of a constant, if the certificate determines it
    key: str = ""  # a digest of everything claimed and derived
    index_coverage: IndexCoverage | None = None
    spectrum: Spectrum | None = None

    @property
    def is_ordinary(self) -> BoolArray:
        """Elements that are neither a masking value nor infinite."""
        ordinary: BoolArray = (abs(self.low) < self.ordinary_limit) & (abs(self.high) < self.ordinary_limit)
        return ordinary

    @property
    def ordinary_limit(self) -> float:
        """Ordinary numbers of this dtype are smaller. Every integer is ordinary: it is an index or a count."""
        if self.dtype.startswith(("int", "uint", "bool")):
            return INF
        return ORDINARY_LIMIT / 10 if self.dtype == "float16" else ORDINARY_LIMIT

    @property
    def masking_threshold(self) -> float:
        """A score of at most this is masked."""
        return -ORDINARY_LIMIT if self.dtype == "float16" else -1e8

    def digest(self, claimed: object) -> str:
        """A digest of everything claimed and derived."""
        bounds = [[a.shape, a.dtype.str, a.tobytes().hex()] for a in (self.low, self.high)]
        coverage = None
        if self.index_coverage is not None:
            dim, covered = self.index_coverage
            coverage = [dim, covered.shape, covered.tobytes().hex()]
        rows = None
        if self.spectrum is not None:
            array = self.spectrum.dependence
            rows = [*self.spectrum[:3], array.shape, array.astype(np.int64).tobytes().hex()]
        return digest_of([claimed, self.moves, self.is_constant, self.constant_value is None, bounds, coverage, rows])


def drop_constant_axes(array: Array) -> Array:
    """The array with size 1 along each dimension on which it does not depend; NaN equals NaN."""
    for d in range(array.ndim):
        first = array.take([0], d) if array.shape[d] > 1 else array
        if ((array == first) | ((array != array) & (first != first))).all():
            array = first
    return array
