"""Convolutions: every output reads a window of its input, all channels mixed.

Lemma (scan_dependence), for windows: see scan.py. With stride s, padding p (in front) and dilation d,
    C[o] = sum_k A[o s - p + k d] W[k]            reads the places i = o s - p + k d,
    transposed, C[i s - p + k d] += A[i] W[k]     reads the places i with i s = o + p - k d,
those inside the input; padding "same" puts (width - 1) d / 2 in front, rounded down. Along a dimension of width 1,
stride 1 and no padding it is linear in the channels alone, and moves as its input does. A channel of C depends on its
own bias and, neither grouped nor transposed, on its own weights.
Where the tokens lie along any other window nothing follows: [1, 2] by the kernel [1, 3] is 7, [2, 1] is 5.
Proof and arithmetic: as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.fx import Node

from orderproof.prover.fact import NEVER, Fact, Levels, compress
from orderproof.prover.move import STILL, Move, is_moved
from orderproof.prover.rule import Application, NothingFollows, rule
from orderproof.prover.rules.movement import rename
from orderproof.prover.rules.scan import LEMMA


@dataclass(frozen=True, slots=True)
class Window:
    """What one spatial dimension of a convolution reads."""

    width: int
    stride: int
    padding: int
    dilation: int
    transposed: bool

    @property
    def single(self) -> bool:
        """Whether each output reads the input at its own place."""
        return self.width == 1 and self.stride == 1 and self.padding == 0

    def places(self, tap: int, size: int) -> Any:
        """For each output the place that one tap reads, where there is one, and whether it is one."""
        if not self.transposed:
            index = np.arange(size) * self.stride - self.padding + tap * self.dilation
            return index, np.ones(size, dtype=bool)
        reach = np.arange(size) + self.padding - tap * self.dilation
        return reach // self.stride, reach % self.stride == 0


@rule(LEMMA, "conv1d", "conv2d", "conv3d", "convolution")
def convolution(a: Application) -> Fact:
    """A window of every spatial dimension, all channels mixed."""
    fact, weight, bias = a.fact(a.args[0]), a.args[1], a.argument(2, "bias")
    transposed = ".convolution." in a.target and bool(a.argument(6, "transposed", False))
    windows = _windows(a, a.fact(weight).shape[2:], transposed=transposed)
    rank, alone = len(windows) + 2, len(fact.shape) == len(windows) + 1
    shape = (1, *a.shape) if alone else a.shape
    if alone:
        fact = rename(fact, (1, *fact.shape), [None, *range(rank - 1)])
    if is_moved(fact.moves[1]):
        raise NothingFollows("the channels of a convolution are summed with different weights, and they move")
    level: Levels = fact.level.max(axis=1, keepdims=True)
    moves: list[Move] = [fact.moves[0], STILL]
    whole = not transposed and a.argument(8 if ".convolution." in a.target else 6, "groups", 1) == 1
    for d, window in enumerate(windows, start=2):
        if is_moved(fact.moves[d]) and not window.single:
            raise NothingFollows(f"a convolution of width {window.width} along dimension {d}, which moves")
        moves.append(fact.moves[d] if window.single else STILL)
        if level.shape[d] > 1 and not window.single:
            level = _windowed(level, d, shape[d], window)
    for place, node in ((1, weight), (2, bias)):
        if isinstance(node, Node):
            own = a.fact(node)
            if not own.unmoved:
                raise NothingFollows(f"the {'weight' if place == 1 else 'bias'} of a convolution moves")
            channels = own.level.reshape(len(own.level), -1).max(axis=1) if place == 2 or whole else own.level.max()
            level = np.maximum(level, channels.reshape(1, -1, *[1] * len(windows)))
    made = Fact(shape, tuple(moves), compress(level))
    return rename(made, a.shape, list(range(1, rank))) if alone else made


def _windows(a: Application, widths: tuple[int, ...], *, transposed: bool) -> list[Window]:
    count = len(widths)
    strides, dilations = _each(a.argument(3, "stride", 1), count), _each(a.argument(5, "dilation", 1), count)
    padding = a.argument(4, "padding", 0)
    if padding == "same":
        paddings = [(w - 1) * d // 2 for w, d in zip(widths, dilations, strict=True)]
    else:
        paddings = _each(0 if padding == "valid" else padding, count)
    return [Window(*x, transposed) for x in zip(widths, strides, paddings, dilations, strict=True)]


def _each(value: Any, count: int) -> list[int]:
    values = [int(value)] if isinstance(value, int) else [int(v) for v in value]
    return values * count if len(values) == 1 else values


def _windowed(level: Levels, dim: int, size: int, window: Window) -> Levels:
    """The highest level in each output's window."""
    taps = []
    for k in range(window.width):
        index, there = window.places(k, size)
        inside = there & (index >= 0) & (index < level.shape[dim])
        tap = np.take(level, np.clip(index, 0, level.shape[dim] - 1), axis=dim)
        shape = [1] * level.ndim
        shape[dim] = size
        taps.append(np.where(inside.reshape(shape), tap, NEVER))
    highest: Levels = np.maximum.reduce(taps)
    return highest
