"""Distances of all pairs of two sets of vectors: `torch.cdist`.

Lemma. Let D[i, k] be a function of all A[i, j] and B[k, j], in which the order of j does not matter.
  1. D[i, k] agrees in both runs where all of them do. A zero does not make it zero.
  2. A moved along i moves D along i; likewise k in B. A and B moved along j by the same permutation leave D as it is.

Machine-checked (proofs/symbolic/steps.v): contraction_step.
Machine-checked (proofs/symbolic/moved_axes.v): sum_over_moved_axis, scores_of_moved_tokens.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from orderproof.logic.terms import FALSE, conjunction, disjunction
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators

DISTANCES = operators("cdist", "_cdist_forward")


def _labels(call: Operation[Any]) -> tuple[list[tuple[Any, list[str]]], list[Hashable]]:
    """The two sets of vectors and the distances, each with the labels of its dimensions."""
    batch = [f"batch {d}" for d in range(max(map(call.rank_of, call.node.args[:2])) - 2)]
    own = [
        [*batch[len(batch) + 2 - call.rank_of(x) :], end, "in"]
        for x, end in zip(call.node.args[:2], ("row", "column"), strict=True)
    ]
    return list(zip(call.node.args[:2], own, strict=True)), [*batch, "row", "column"]


@DISTANCES.open
def distances(call: OpenOperation) -> OpenFact:
    """The distance of each vector of the first set to each of the second."""
    operands, result = _labels(call)
    facts = [(call.fact(node), labels) for node, labels in operands]
    common = frame(facts, result)
    placed = [common.place(fact, labels) for fact, labels in facts]
    first_bound = sum(len(common.axes[label]) for label in result)
    same = call.context.for_all(conjunction(*(fact.same for fact in placed)), placed[0].sizes, first_bound)
    loose = disjunction(*(part for fact in placed for part in (fact.ranges().hidden, fact.ranges().unbounded)))
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, placed[0].sizes, first_bound)
    return OpenFact(tuple(common.axes[label] for label in result), call.dtype, same, unbounded=unbounded)


@DISTANCES.moved
def moved_distances(call: MovedOperation) -> MovedFact:
    """The distance of each vector of the first set to each of the second."""
    operands, result = _labels(call)
    return call.combined([(call.fact(node), labels) for node, labels in operands], result)
