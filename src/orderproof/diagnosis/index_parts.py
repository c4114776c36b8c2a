"""The parts of dimensions in `index_paths`, and how dimensions of several tensors are aligned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import Node

FEATURE, UNKNOWN = "feature", ""


@dataclass(frozen=True)
class Part:
    """An index: its number of values, its kind, and how many of its values come before those of the input's axis."""

    size: int
    kind: str = UNKNOWN
    before: int = 0


Dim = tuple[Part, ...]
Dims = tuple[Dim, ...]


def node_shape(node: Node) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tuple(int(size) for size in node.meta["val"].shape)


def unknown(shape: Sequence[int]) -> Dims:
    """Dimensions of which nothing is known."""
    return tuple((Part(size),) for size in shape)


def is_named(dim: Dim) -> bool:
    """True if a part is an axis of an input."""
    return any(part.kind not in (FEATURE, UNKNOWN) for part in dim)


def is_feature(dim: Dim) -> bool:
    """True if each part of a dimension is a feature."""
    return all(part.kind == FEATURE for part in dim)


def aligned(shape: tuple[int, ...], operands: Sequence[Dims]) -> Dims:
    """The dimensions of a broadcast result: those of an operand that runs along them, a named one first."""
    result = []
    for place in range(1, len(shape) + 1):
        own = [dims[-place] for dims in operands if len(dims) >= place]
        result.append(merged([dim for dim in own if dim_size(dim) == shape[-place]], shape[-place]))
    return tuple(reversed(result))


def merged(own: Sequence[Dim], size: int) -> Dim:
    """The dimension along which each of these runs."""
    named = list(dict.fromkeys(dim for dim in own if is_named(dim)))
    if named:
        return named[0] if len(named) == 1 else (Part(size),)
    if size == 1 or (own and all(map(is_feature, own))):
        return (Part(size, FEATURE),)
    return (Part(size),)


def dim_size(dim: Dim) -> int:
    """The number of entries of a dimension."""
    return math.prod(part.size for part in dim)
