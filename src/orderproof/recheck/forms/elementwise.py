"""Operators on single elements: each element of the result combines the elements at its own position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import INF, Fact
from orderproof.recheck.labelled import Bounds, Combination, elementwise_fact
from orderproof.recheck.reading import DTYPES, require


@dataclass(frozen=True)
class Elementwise:
    """The operator itself, applied to numbers at the bounds of its operands.

    `first_only`: the other operands give a dtype or a shape, and no numbers.
    """

    bounds: Bounds
    first_only: bool = False

    @property
    def bounds_include_literals(self) -> bool:
        """The bounds of a monotone operator are computed with its literals."""
        return self.bounds == "monotone"

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        facts = call.facts
        read = facts[:1] if self.first_only else facts

        def evaluate(*numbers: Tensor) -> Tensor:
            tensors = {id(f): torch.zeros((), dtype=DTYPES[f.dtype]) for f in facts}
            tensors |= {id(f): x for f, x in zip(read, numbers, strict=True)}
            return call.run(lambda f: tensors[id(f)])[0]

        bounds = "exact" if "complex" in outputs[0].dtype else self.bounds
        return [elementwise_fact(algebra, out, Combination(evaluate, bounds), *read) for out in outputs]


@dataclass(frozen=True)
class Select:
    """A condition that chooses between two operands: arguments `condition`, `if_true`, `if_false`."""

    condition: str
    if_true: str
    if_false: str
    bounds_include_literals: bool = True

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        operands: list[Fact | float] = []
        for name in (self.condition, self.if_true, self.if_false):
            value = call.arguments[name]
            require(isinstance(value, Fact | int | float), f"expected a tensor or a number for its argument {name}")
            assert isinstance(value, Fact | int | float)
            operands.append(value)
        return [select_fact(algebra, outputs[0], *operands)]


def select_fact(
    algebra: FactAlgebra, out: Fact, condition: Fact | float, if_true: Fact | float, if_false: Fact | float
) -> Fact:
    """The fact about torch.where(condition, if_true, if_false)."""
    return elementwise_fact(algebra, out, Combination(torch.where, "select"), condition, if_true, if_false)


def visible_scores(algebra: FactAlgebra, out: Fact, mask: Fact) -> Fact:
    """The fact about a boolean attention mask as scores to add: 0 where it is true, -inf elsewhere."""
    return select_fact(algebra, out, mask, 0.0, -INF)
