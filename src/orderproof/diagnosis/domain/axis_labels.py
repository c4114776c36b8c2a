"""Axis labels, as in einsum: dimensions of several tensors with one label are one index of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Shape

Labels = tuple[str, ...]  # one for each dimension; '' for a dimension of size 1 that broadcasts


def labels_of(shape: Shape, labels: Sequence[str]) -> Labels:
    """The labels of a tensor of this shape: '' for each dimension of size 1."""
    return tuple(label if size > 1 else "" for label, size in zip(labels, shape, strict=True))


def broadcast_labels(shape: Shape, rank: int) -> Labels:
    """The labels of an operand that broadcasts to a result of this rank, whose dimensions are "0", "1", ..."""
    shift = rank - len(shape)
    return tuple(str(d + shift) if size > 1 else "" for d, size in enumerate(shape))


def align_to_labels(array: NDArray[np.generic], labels: Labels, order: Sequence[str]) -> NDArray[np.generic]:
    """Put an array's dimensions in the order of the labels, with size 1 for the labels it lacks."""
    named = [d for d, label in enumerate(labels) if label]
    dropped = tuple(d for d, label in enumerate(labels) if not label)
    if dropped:
        array = array[tuple(0 if d in dropped else slice(None) for d in range(array.ndim))]
    labels = tuple(labels[d] for d in named)
    position = {label: k for k, label in enumerate(labels)}
    present = [position[label] for label in order if label in position]
    if present != list(range(len(present))):
        array = array.transpose(present)
    sizes = iter(array.shape)
    return array.reshape([next(sizes) if label in position else 1 for label in order])


def join(levels: Sequence[DependenceArray]) -> DependenceArray:
    """The larger level of each element; an empty sequence gives `NEVER`."""
    result = levels[0]
    for level in levels[1:]:
        if level.size == 1 and level.flat[0] == NEVER:
            continue
        result = np.maximum(result, level)
    return result


def project(dependence: DependenceArray, labels: Labels, output: Labels) -> DependenceArray:
    """The dependence of a sum (or any function) over every label that is not in the output."""
    summed = tuple(d for d, label in enumerate(labels) if label and label not in output)
    if summed:
        dependence = dependence.max(axis=summed)
        labels = tuple(x for d, x in enumerate(labels) if d not in summed)
    return align_to_labels(dependence, labels, output)  # type: ignore[return-value]
