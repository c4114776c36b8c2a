"""An operator of the walk over tensors that move with the tokens, with the facts about its operands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from orderproof.theorems.facts.moved_fact import Dim, MovedFact, aligned
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.operation import Operation

MovedFacts = MovedFact | tuple[MovedFact, ...]
Labels = Sequence[Hashable]


@dataclass
class MovedOperation(Operation[MovedFact]):
    """One operator at one node, with the facts about its operands.

    `without_order`: a flag that has the operator compare the indices of tokens counts as not set.
    """

    without_order: bool = False

    def fact(self, node: Any) -> MovedFact:
        """The fact about one tensor operand. Raises `NotCovered`."""
        found = super().fact(node)
        if found.written is not None:
            raise NotCovered("memory that was not written")
        return found

    def operands(self) -> list[MovedFact]:
        """The facts about all tensor operands."""
        return [self.fact(node) for node in self.node.all_input_nodes]

    def combined(self, operands: Sequence[tuple[MovedFact, Labels]], result: Labels) -> MovedFact:
        """The fact about a tensor with labelled dimensions; labels that are not in the result are summed over."""
        by_label: dict[Hashable, list[Dim]] = {label: [] for label in result}
        for fact, labels in operands:
            for dim, label in zip(fact.dims, labels, strict=True):
                by_label.setdefault(label, []).append(dim)
        equal = self.context.equal_sizes
        joined = {label: aligned(dims, equal) for label, dims in by_label.items()}
        return MovedFact(tuple(joined[label] for label in result))

    def broadcast(self, facts: Sequence[MovedFact]) -> MovedFact:
        """The fact about a tensor that is computed elementwise, with broadcasting."""
        rank = max((len(fact.dims) for fact in facts), default=0)
        return self.combined([(fact, range(rank - len(fact.dims), rank)) for fact in facts], range(rank))


def is_function(target: Any) -> bool:
    """True if the results of an operator follow from its operands: without chance, or memory that was not written."""
    name = str(target)
    return (
        name.startswith("aten.")
        and "empty" not in name
        and torch.Tag.nondeterministic_seeded not in getattr(target, "tags", ())
    )


def is_view(target: Any) -> bool:
    """True if the result of an operator may share the memory of its operand."""
    schema = getattr(target, "_schema", None)
    return schema is not None and any(r.alias_info and not r.alias_info.is_write for r in schema.returns)


def is_same_tensor(target: Any) -> bool:
    """True if the result of an operator is its operand, where both have the same shape."""
    return str(target).split(".")[1] in ("reshape", "view", "_unsafe_view", "detach", "alias", "contiguous")
