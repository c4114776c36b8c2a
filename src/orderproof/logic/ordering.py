"""The order of expressions, and their size as text.

Expressions share their parts: what is stored is a graph. Its text writes a shared part once for each use, so that its
length grows exponentially with nested conditions. Small expressions are ordered by their text, as they are printed, and
come first; large ones by a digest, which is computed from the digests of the parts. Neither depends on the process.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Any

from orderproof.errors import CaptureError

TEXT_ORDER = 1_000  # nodes of the largest expressions that are ordered by their text
MAX_NODES = 20_000  # of an expression that is printed
MAX_FACT_NODES = 200_000  # of one in the fact about a tensor, which a certificate writes out
MOST_COUNTED = 10**9  # nodes, up to which they are counted


class TooLarge(CaptureError):
    """An expression is too large to be printed."""


class Ordered:
    """An object with parts, a text and a place in the order.

    Attributes:
        parts: The parts, which were made before it.
        size: The number of nodes when shared parts are written out at each use; at most `MOST_COUNTED`.
        digest: A digest of the kind and the parts, the same in every process.

    """

    parts: tuple[Any, ...]
    size: int
    digest: bytes

    def set_parts(self, parts: tuple[Any, ...]) -> None:
        """Set the parts, and what is computed from theirs: at once, as it would be a deep recursion later."""
        self.parts = parts
        self.size = min(1 + _size(parts), MOST_COUNTED)
        self.digest = sha256(type(self).__name__.encode() + _encoded(parts)).digest()

    @property
    def text(self) -> str:
        """The text."""
        raise NotImplementedError

    @cached_property
    def order(self) -> tuple[bool, str]:
        """The sort key of the expression. Different expressions have different ones."""
        large = self.size > TEXT_ORDER
        return large, self.digest.hex() if large else self.text


def _size(part: Any) -> int:
    """The number of nodes of a part."""
    if isinstance(part, Ordered):
        return part.size
    return sum(map(_size, part)) if isinstance(part, tuple) else 1


def _encoded(part: Any) -> bytes:
    """A part as bytes, which differ for different parts."""
    if isinstance(part, Ordered):
        return b"e" + part.digest
    if isinstance(part, tuple):
        return b"(%d:" % len(part) + b"".join(map(_encoded, part))
    text = repr(part).encode()
    return b"r%d:" % len(text) + text
