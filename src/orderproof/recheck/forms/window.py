"""Convolution and pooling: each element of the result reads a window of positions.

The positions are found by running the operator on indicators: for each level of dependence, ones where the input may
depend on that level or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import DIMENSION_LABELS, IDENTITY, INDEPENDENT, INF, Array, BoolArray, Fact
from orderproof.recheck.labelled import labelled_fact


@dataclass(frozen=True)
class Convolution:
    """A sum over input channels and over a window, with weights."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        (out,), x, weight = outputs, call.fact("input"), call.fact("weight")
        rank, kernel = len(out.shape), weight.shape[2:]
        first = rank - len(kernel)  # the first spatial dimension; the channel is before it
        dependence = x.dependence.max(axis=first - 1, keepdims=True)
        dependence = np.broadcast_to(dependence, (*dependence.shape[:first], *x.shape[first:]))
        seen: Array = np.array(INDEPENDENT)
        for level in np.unique(dependence):
            seen = np.where(_windows_with(call, dependence >= level, kernel), level, seen)
        high = np.full((1,) * rank, 1 if x.is_ordinary.all() else INF)
        windows = replace(x, shape=(*x.shape[:first], *out.shape[first:]), dependence=seen, low=-high, high=high)

        channel = DIMENSION_LABELS[first - 1]
        unit_stride = set(call.integers("stride")) == {1}
        by_position = channel + "ypqrstuv"  # channels and weights
        for d, width in enumerate(kernel, start=first):
            pointwise = width == 1 and unit_stride and x.shape[d] == out.shape[d]
            by_position += "" if pointwise else DIMENSION_LABELS[d]
        weight_labels = ("p" if call.flag("transposed") else channel) + "qrstuv"[: len(kernel) + 1]
        operands = [(windows, DIMENSION_LABELS[: first - 1] + "y" + DIMENSION_LABELS[first:rank])]
        operands += [(f, weight_labels if len(f.shape) > 1 else channel) for f in call.facts if f is not x]
        fact = labelled_fact(algebra, out, operands, DIMENSION_LABELS[:rank], by_position)
        if call.arguments["bias"] is None and all(f.is_ordinary.all() for f in call.facts):
            other = ((x.low != 0) | (x.high != 0)).any(axis=first - 1, keepdims=True)
            other = np.broadcast_to(other, (*other.shape[:first], *x.shape[first:]))
            zero = ~_windows_with(call, other, kernel)
            low, high = (np.where(zero, 0, bound) for bound in (fact.low, fact.high))
            fact = algebra.derived(fact, fact.dependence, low, high)
        return [fact]


def _windows_with(call: BoundCall, marked: BoolArray, kernel: tuple[int, ...]) -> BoolArray:
    """The windows of a convolution with a marked element."""
    ones = torch.ones(1, 1, *kernel).double()
    indicator = torch.from_numpy(marked * 1.0)
    (hit,) = call.run(lambda _: None, {"input": indicator, "weight": ones, "bias": None, "groups": 1})
    found: BoolArray = hit.numpy() > 0
    return found


@dataclass(frozen=True)
class Pool:
    """A mean, a maximum or an interpolation over windows of the last `spatial_dims` dimensions.

    `signed_weights`: an interpolation whose weights may cancel, so that every output may read the whole input.
    """

    spatial_dims: int
    signed_weights: bool = False
    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        operand = "self" if "self" in call.arguments else "input"
        x, shape = call.fact(operand), outputs[0].shape
        leading = len(shape) - self.spatial_dims
        dependence = x.dependence
        if self.signed_weights:
            dependence = dependence.max(axis=tuple(range(leading, len(x.shape))), keepdims=True)
        dependence = np.broadcast_to(dependence, (*dependence.shape[:leading], *x.shape[leading:]))
        seen = np.full((*dependence.shape[:leading], *shape[leading:]), INDEPENDENT)
        for level in np.unique(dependence[dependence > INDEPENDENT]):
            indicator = torch.from_numpy((dependence >= level) * 1.0)
            hit = call.run(lambda _: None, {operand: indicator})[0]
            seen = np.where(hit.numpy() != 0, level, seen)  # a negative divisor makes means negative
        labels, derived = DIMENSION_LABELS[: len(shape)], []
        if call.name.startswith("adaptive_avg") and set(shape[leading:]) == {1}:  # a mean over everything: no windows
            x = replace(x, moves=(*x.moves[:leading], *(IDENTITY for _ in shape[leading:])))
        for out in outputs:  # values, and their indices
            high = np.full((1,) * len(shape), 1 if x.is_ordinary.all() or "int" in out.dtype else INF)
            windows = replace(x, shape=(*x.shape[:leading], *shape[leading:]), dependence=seen, low=-high, high=high)
            derived.append(labelled_fact(algebra, out, [(windows, labels)], labels, labels[leading:]))
        return derived
