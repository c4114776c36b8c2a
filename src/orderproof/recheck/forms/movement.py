"""Operators that move elements without changing them, such as a transposition or a concatenation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall, Substitution, facts_in
from orderproof.recheck.fact import (
    INDEPENDENT,
    INF,
    TOP,
    UNIFORM,
    Array,
    Fact,
    drop_constant_axes,
)
from orderproof.recheck.reading import require

PADDING_MODES = ("constant", "reflect", "replicate", "circular")


@dataclass(frozen=True)
class Movement:
    """The operator is run on the numbers 1, 2, ... of its operands' elements; 0 is the element that it fills with."""

    bounds_include_literals: bool = True

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        require(call.arguments.get("mode", "constant") in PADDING_MODES, "it does more than move elements")
        operands = facts_in([call.arguments.get(name) for name in ("self", "input", "tensors", "src")])
        fill = call.arguments.get("value") or 0
        require(isinstance(fill, int | float), "expected a number to fill with")
        assert isinstance(fill, int | float)

        def run(substitute: Substitution) -> list[Tensor]:
            return call.run(substitute, {"value": 0} if "value" in call.arguments else None)

        shape_only = call.arguments.get("other")
        return movement_facts(algebra, operands, outputs, run, fill=fill, shape_only=shape_only)


def movement_facts(
    algebra: FactAlgebra,
    operands: Sequence[Fact],
    outputs: Sequence[Fact],
    run: Callable[[Substitution], list[Tensor]],
    *,
    fill: float = 0,
    shape_only: object = None,
) -> list[Fact]:
    """The facts about results that consist of the elements of operands and of `fill`.

    `run` applies the movement to given tensors; of `shape_only` it reads the shape alone. Each element of a result has
    the fact of its source. It moves as claimed if the source of its image is the image of its source.
    """
    generators = range(len(algebra.group))
    numbers: dict[int, Array] = {}
    # One entry for each element: index 0 is the fill value.
    dependence, low, high = [np.array([INDEPENDENT])], [np.array([fill])], [np.array([fill])]
    images = [[np.array([0])] for _ in generators]
    start = 1
    for f in operands:
        own = np.arange(start, start + math.prod(f.shape)).reshape(f.shape)
        start += own.size
        for d, move in enumerate(f.moves):
            if move == UNIFORM:
                own = np.broadcast_to(own.take([0], d), f.shape)
        numbers[id(f)] = own
        bounds: tuple[Array, Array] = (f.low, f.high)
        if f.dtype != outputs[0].dtype and "float" not in outputs[0].dtype:  # a cast may change an unordinary number
            limit = np.where(f.is_ordinary, 1, INF)
            bounds = (-limit, limit)
        for column, array in zip((dependence, low, high), (f.dependence, *bounds), strict=True):
            column.append(np.broadcast_to(array, f.shape).ravel())
        for g in generators:
            images[g].append(np.broadcast_to(algebra.pull_back(own, f.moves, g), f.shape).ravel())
    all_dependence, all_low, all_high = (np.concatenate(column) for column in (dependence, low, high))
    all_images = [np.concatenate(column) for column in images]

    def substitute(f: Fact) -> Tensor:
        if id(f) in numbers:
            return torch.from_numpy(numbers[id(f)].copy())
        require(f.constant_value is not None or f is shape_only, "it moves elements to places that depend on the input")
        return torch.zeros(f.shape) if f.constant_value is None else f.constant_value

    results = []
    for out, tensor in zip(outputs, run(substitute), strict=True):
        source = tensor.numpy()
        for d, move in enumerate(out.moves):
            uniform = move != UNIFORM or (source == source.take([0], d)).all()
            require(uniform, "it is claimed to be uniform along a dimension where it need not be")
        wrong = [algebra.pull_back(source, out.moves, g) != all_images[g][source] for g in generators]
        levels = np.where(np.any(wrong, axis=0), TOP, all_dependence[source])
        arrays = (drop_constant_axes(x) for x in (levels, all_low[source], all_high[source]))
        results.append(algebra.derived(out, *arrays))
    return results
