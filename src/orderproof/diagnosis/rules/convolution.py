"""Convolutions: every output reads a window of its input, and all channels.

Lemma (scan_dependence), for convolutions: see scan.py. With stride s, padding p (in front) and dilation d,
    C[o] = sum_k A[o s - p + k d] W[k]            reads the positions i = o s - p + k d,
    transposed, C[i s - p + k d] += A[i] W[k]     reads the positions i with i s = o + p - k d,
those inside the input. Padding "same" puts (width - 1) d / 2 in front, rounded down. Along a dimension of width 1,
stride 1 and no padding it is linear in the channels alone, and moves as its input does. A channel of C depends on its
own bias and, neither grouped nor transposed, on its own weights.
A window of zeros in every channel gives zero, without a bias: talking heads mix the weights of masked attention.
Along a wider window a moved dimension does not determine C: [1, 2] by the kernel [1, 3] is 7, [2, 1] is 5.
Proof and arithmetic: as there.
Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, convolution_reads_window.
Not machine-checked: the windows of transposed and grouped convolutions, which are found by arithmetic on positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.fx import Node

from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Fact, Shape, fact_with_ranges
from orderproof.diagnosis.domain.move import STILL, Move, is_permuted
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, rule
from orderproof.diagnosis.rules.movement import permute_dims
from orderproof.diagnosis.rules.scan import LEMMA


@dataclass(frozen=True, slots=True)
class Window:
    """The window of one spatial dimension of a convolution."""

    width: int
    stride: int
    padding: int
    dilation: int
    further: int  # outputs that are longer than the windows, of a transposed convolution
    transposed: bool

    @property
    def is_pointwise(self) -> bool:
        """True if each output reads the input at its own position only, and there is one for each input."""
        return self.width == 1 and self.stride == 1 and self.padding == 0 and self.further == 0

    def input_positions(self, tap: int, size: int) -> Any:
        """For each output the input position that one tap reads, and a mask of the outputs for which there is one."""
        if not self.transposed:
            index = np.arange(size) * self.stride - self.padding + tap * self.dilation
            return index, np.ones(size, dtype=bool)
        scaled = np.arange(size) + self.padding - tap * self.dilation
        return scaled // self.stride, scaled % self.stride == 0


@rule(LEMMA, "conv1d", "conv2d", "conv3d", "convolution")
def convolution(call: OperatorCall) -> Fact:
    """A window of every spatial dimension, summed over the input channels."""
    fact, weight, bias = call.fact(call.args[0]), call.args[1], call.argument(2, "bias")
    transposed = ".convolution." in call.target and bool(call.argument(6, "transposed", False))
    windows = _spatial_windows(call, call.fact(weight).shape[2:], transposed=transposed)
    rank, unbatched = len(windows) + 2, len(fact.shape) == len(windows) + 1
    shape = (1, *call.shape) if unbatched else call.shape
    if unbatched:
        fact = permute_dims(fact, (1, *fact.shape), [None, *range(rank - 1)])
    if is_permuted(fact.moves[1]):
        raise RuleNotApplicable("the channels of a convolution are summed with different weights, and they move")
    dependence: DependenceArray = fact.dependence.max(axis=1, keepdims=True)
    moves: list[Move] = [fact.moves[0], STILL]
    per_channel = not transposed and call.argument(8 if ".convolution." in call.target else 6, "groups", 1) == 1
    for d, window in enumerate(windows, start=2):
        if is_permuted(fact.moves[d]) and not window.is_pointwise:
            raise RuleNotApplicable(f"a convolution of width {window.width} along dimension {d}, which moves")
        moves.append(fact.moves[d] if window.is_pointwise else STILL)
        if dependence.shape[d] > 1 and not window.is_pointwise:
            dependence = _dependence_of_windows(dependence, d, shape[d], window)
    for argument, node in ((1, weight), (2, bias)):
        if isinstance(node, Node):
            weights = call.fact(node)
            if not weights.has_no_moves:
                raise RuleNotApplicable(f"the {'weight' if argument == 1 else 'bias'} of a convolution moves")
            channels = (
                weights.dependence.reshape(len(weights.dependence), -1).max(axis=1)
                if argument == 2 or per_channel
                else weights.dependence.max()
            )
            dependence = np.maximum(dependence, channels.reshape(1, -1, *[1] * len(windows)))
    ranges = None
    if bias is None and not any(call.may_mask(n) for n in (call.args[0], weight)):
        ranges = _zeros_of_windows(fact, shape, windows)
    result = fact_with_ranges(shape, tuple(moves), dependence, ranges)
    return permute_dims(result, call.shape, list(range(1, rank))) if unbatched else result


def _zeros_of_windows(fact: Fact, shape: Shape, windows: list[Window]) -> ValueRanges | None:
    """Exact zeros at the outputs whose window holds zeros only, in every channel."""
    if fact.ranges is None or len(windows) == 0:
        return None
    zero = fact.ranges.exactly(0).all(axis=1, keepdims=True)
    if not zero.any():
        return None
    other = np.where(zero, NEVER, NEVER + 1)
    for d, window in enumerate(windows, start=2):
        if not window.is_pointwise:
            other = np.broadcast_to(other, (*other.shape[:d], fact.shape[d], *other.shape[d + 1 :]))
            other = _dependence_of_windows(other, d, shape[d], window)
    return ValueRanges.ordinary(len(shape)).with_exact(other == NEVER, 0)


def _spatial_windows(call: OperatorCall, widths: tuple[int, ...], *, transposed: bool) -> list[Window]:
    count = len(widths)
    strides, dilations = (
        _per_dimension(call.argument(3, "stride", 1), count),
        _per_dimension(call.argument(5, "dilation", 1), count),
    )
    padding = call.argument(4, "padding", 0)
    if padding == "same":
        paddings = [(w - 1) * d // 2 for w, d in zip(widths, dilations, strict=True)]
    else:
        paddings = _per_dimension(0 if padding == "valid" else padding, count)
    further = _per_dimension(call.argument(7, "output_padding", 0) if ".convolution." in call.target else 0, count)
    return [Window(*x, transposed) for x in zip(widths, strides, paddings, dilations, further, strict=True)]


def _per_dimension(value: Any, count: int) -> list[int]:
    values = [int(value)] if isinstance(value, int) else [int(v) for v in value]
    return values * count if len(values) == 1 else values


def _dependence_of_windows(dependence: DependenceArray, dim: int, size: int, window: Window) -> DependenceArray:
    """The largest dependence in each output's window."""
    taps = []
    for k in range(window.width):
        index, exists = window.input_positions(k, size)
        inside = exists & (index >= 0) & (index < dependence.shape[dim])
        tap = np.take(dependence, np.clip(index, 0, dependence.shape[dim] - 1), axis=dim)
        shape = [1] * dependence.ndim
        shape[dim] = size
        taps.append(np.where(inside.reshape(shape), tap, NEVER))
    highest: DependenceArray = np.maximum.reduce(taps)
    return highest
