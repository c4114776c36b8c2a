"""The operands of a pointwise operator at the indices of its result.

Machine-checked (proofs/symbolic/steps.v): pointwise_step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE
from orderproof.number_limits import largest_ordinary
from orderproof.recording.open_sizes import OpaqueNumber
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.integer_values import known_literal
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Value
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import operator_of

KEEPS = {"clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy", "positive"}


CONVERTS = {"to", "_to_copy", "type_as"}


@dataclass(frozen=True)
class Operands:
    """The tensors of a pointwise operator at the indices of the result, and all of its arguments in order."""

    nodes: tuple[Node, ...]
    facts: tuple[OpenFact, ...]
    arguments: tuple[Any, ...]  # a node or a number

    def fact(self, argument: Any) -> OpenFact:
        """The fact about an argument; that of a constant for a number."""
        if isinstance(argument, Node):
            return self.facts[self.nodes.index(argument)]
        if isinstance(argument, OpaqueNumber):
            return OpenFact(self.facts[0].dims, torch.float32)
        if isinstance(argument, complex):  # complex numbers have no values in facts
            zero = TRUE if argument == 0 else FALSE
            loose = FALSE if abs(argument) < largest_ordinary() else TRUE
            return OpenFact(self.facts[0].dims, torch.complex64, zero=zero, unbounded=loose)
        known = known_literal(argument)
        value: Value = known if known is not None else Cases(((TRUE, float(argument)),))
        return OpenFact(self.facts[0].dims, torch.float32, value=value)


def operands_of(call: OpenOperation) -> Operands:
    """The operands at the indices of the result."""
    arguments = tuple(x for x in call.node.args if x is not None)
    if call.name in CONVERTS:
        arguments = arguments[:1]
    nodes = tuple(dict.fromkeys(x for x in arguments if isinstance(x, Node)))
    rank = len(call.shape)
    facts = [call.fact(node) for node in nodes]
    labels = [range(rank - len(fact.dims), rank) for fact in facts]
    common = frame(list(zip(facts, labels, strict=True)), range(rank))
    return Operands(nodes, tuple(common.place(f, own) for f, own in zip(facts, labels, strict=True)), arguments)


def is_lowered(node: Node) -> bool:
    """True of a tensor of floats less a number that is not negative."""
    number = node.args[1] if len(node.args) == 2 and not node.kwargs else None
    if operator_of(node) not in ("add", "sub") or not isinstance(number, int | float):
        return False
    is_float: bool = node.meta["val"].dtype.is_floating_point
    return is_float and 0 <= (number if operator_of(node) == "sub" else -number) < math.inf
