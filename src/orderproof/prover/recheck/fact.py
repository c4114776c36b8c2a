"""What a step of a certificate says of a tensor, as a rechecker knows it; and reading it.

How its elements move, and for each element the first case that can change it (`level`) and the ends between which it
lies (`low`, `high`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orderproof.errors import CertificateError

STILL, FREE, NEVER, ALWAYS = "still", "free", -1, 2**40  # any other move: a permutation for each generator
INF, LARGE, LARGEST, DIMS = math.inf, 6e4, 1 << 26, "0123456789"  # no ordinary number is LARGE, no array LARGEST
END = 2**63 - 1  # what a slice ends at that has no end


@dataclass(frozen=True)
class Fact:
    """One tensor."""

    shape: tuple[int, ...]
    dtype: str
    moves: tuple[Any, ...]
    level: Any  # this and the next two: every dimension full or 1
    low: Any  # -1 and 1 are the ends of any ordinary number, infinities those of anything
    high: Any
    status: Any = None  # in what a step says: 0 ordinary, 1 exact, 2 masked, 3 anything, 4 ordinary or as low as a mask
    constant: bool = False
    tensor: Any = None  # the value of a constant that can be computed
    key: str = ""  # of all that was said and derived
    among: Any = None  # of places of lines: along which dimension, and which places are among them for certain

    @property
    def ordinary(self) -> Any:
        """Elements that are no mask and no infinity."""
        most = INF if self.dtype[:3] in ("int", "uin", "boo") else LARGE / 10 if self.dtype == "float16" else LARGE
        return (abs(self.low) < most) & (abs(self.high) < most)

    @property
    def mask(self) -> float:
        """What is at most this hides, in its dtype."""
        return -LARGE if self.dtype == "float16" else -1e8

    def content(self, said: Any) -> str:
        """A digest of all that is said and derived."""
        ends = [[a.shape, a.dtype.str, a.tobytes().hex()] for a in (self.low, self.high)]
        among = self.among and [self.among[0], self.among[1].shape, self.among[1].tobytes().hex()]
        return digest_of([said, self.moves, self.constant, self.tensor is None, ends, among])


def need(condition: object, message: str) -> None:
    """Raise `CertificateError` where the condition fails."""
    if not condition:
        raise CertificateError(message)


def digest_of(data: object) -> str:
    """SHA-256 of data as JSON."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def array_of(data: Mapping[str, Any], shape: Sequence[int], kinds: str = "bif") -> Any:
    """An array, from its runs. Raises `CertificateError` where it does not fit the tensor\'s shape."""
    sizes, counts = data["shape"], [count for _, count in data["runs"]]
    fits = all(type(a) is int and a in (1, b) for a, b in zip(sizes, shape, strict=True))
    fits = fits and all(type(k) is int and k > 0 for k in counts) and sum(counts) == math.prod(sizes) <= LARGEST
    values = np.array([float(x["float"]) if isinstance(x, dict) else x for x, _ in data["runs"]] or np.zeros(0, int))
    need(fits and values.dtype.kind in kinds, "an array that does not fit its tensor, or of another kind of number")
    return np.repeat(values, np.array(counts, int)).reshape(sizes)


def compressed(array: Any) -> Any:
    """An array of size 1 along each dimension on which it does not depend."""
    for d in range(array.ndim):
        first = array.take([0], d) if array.shape[d] > 1 else array
        array = first if ((array == first) | ((array != array) & (first != first))).all() else array
    return array
