"""Repeated steps: the same operator on the same facts gives the same fact, so it is analyzed once.

Two steps are the same if operator, literal arguments, shapes and dtypes are equal and each operand is the same: the
same constant, or a tensor with an equal fact. A parameter whose values may not be used is the same as any other of its
shape and dtype. The second and every later layer of a model is therefore free, without a notion of a layer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from torch import Tensor
from torch.fx import Node

from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.domain.fact import Fact, Spectrum
from orderproof.diagnosis.rule import Facts


class StepMemo:
    """The analyzed steps of one graph, by operator and operands."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.first_occurrence: dict[Hashable, Node] = {}
        self._fact_ids: dict[Hashable, int] = {}
        self._facts_by_identity: dict[int, tuple[Fact, int]] = {}  # holds the fact, so that no other takes its id()

    def key(self, node: Node, facts: Mapping[Node, Facts]) -> Hashable | None:
        """Operator, literals and operands of a step; None if it cannot be shared."""
        if not isinstance(node.meta.get("val"), Tensor):
            return None  # which of several results are read matters to the rule
        try:
            arguments = self._argument(node.args, facts), self._argument(tuple(sorted(node.kwargs.items())), facts)
            key: Hashable = (node.target, _shape_and_dtype(node), node in self.constants, *arguments)
            hash(key)
        except (KeyError, TypeError):
            return None
        return key

    def _argument(self, x: Any, facts: Mapping[Node, Facts]) -> Hashable:
        if isinstance(x, Node):
            fact = facts[x]
            if not isinstance(fact, Fact):
                raise KeyError(x)
            if x not in self.constants:
                return "tensor", _shape_and_dtype(x), self.fact_id(fact)
            if self.constants.is_opaque(x):
                return "opaque", _shape_and_dtype(x), self.fact_id(fact)
            return "constant", x.name
        if isinstance(x, list | tuple):
            return tuple(self._argument(y, facts) for y in x)
        return type(x).__name__, repr(x) if isinstance(x, float) else x  # 1, 1.0 and True are different arguments

    def fact_id(self, fact: Fact) -> int:
        """The same number for equal facts."""
        found = self._facts_by_identity.get(id(fact))
        if found is None:
            ranges = fact.ranges
            content = (
                fact.shape,
                tuple(map(id, fact.moves)),  # moves are interned
                fact.dependence.shape,
                fact.dependence.tobytes(),
                ranges and (_array_key(ranges.low), ranges.low is ranges.high or _array_key(ranges.high)),
                fact.index_coverage and (fact.index_coverage.dim, *_array_key(fact.index_coverage.covered)),
                fact.spectrum and _spectrum_key(fact.spectrum),
            )
            found = self._facts_by_identity[id(fact)] = (fact, self._fact_ids.setdefault(content, len(self._fact_ids)))
        return found[1]


def _array_key(value: Any) -> tuple[Hashable, ...]:
    return value.dtype.str, value.shape, value.tobytes()


def _spectrum_key(spectrum: Spectrum) -> tuple[Hashable, ...]:
    return spectrum.dim, spectrum.size, spectrum.half, *_array_key(spectrum.dependence)


def _shape_and_dtype(node: Node) -> Hashable:
    value = node.meta["val"]
    return tuple(value.shape), value.dtype
