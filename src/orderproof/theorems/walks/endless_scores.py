"""Rows of scores that are all -inf, whose weights are NaN until `nan_to_num` makes them zero.

Lemma. Let a score be -inf or NaN. Its weight by softmax is zero, or NaN if all scores of its row are -inf, or if one is
NaN or +inf. So `nan_to_num`, which writes zero for NaN, gives zero, whatever the other scores are.
Proof. exp(-inf - m) / s is zero for a largest score m that is a number, where s is a number too. Any other m or s gives
NaN: -inf - -inf, inf - inf and what is computed from NaN are NaN. A score NaN has a weight NaN.

A sum of -inf and any other number is -inf or NaN.
"""

from __future__ import annotations

import math
from dataclasses import replace

from torch.fx import Node

from orderproof.logic.terms import FALSE, Formula, conjunction, disjunction
from orderproof.theorems.facts.open_fact import Cases, OpenFact
from orderproof.theorems.operators.pointwise.operands import operands_of
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import operator_of


def zero_after_softmax(call: OpenOperation) -> Formula:
    """Where the result of `nan_to_num` is the weight of a score that is -inf or NaN, and so zero."""
    weights = call.node.args[0]
    if call.name != "nan_to_num" or call.argument(1, "nan") not in (None, 0) or not isinstance(weights, Node):
        return FALSE
    scores = weights.args[0] if operator_of(weights) in ("softmax", "_softmax") else None
    return _endless(call, scores) if isinstance(scores, Node) else FALSE


def _endless(call: OpenOperation, scores: Node) -> Formula:
    """Where scores are -inf or NaN, by the operator that computes them."""
    if operator_of(scores) not in ("masked_fill", "where", "add") or scores.kwargs:
        return FALSE
    own = replace(call, node=scores)
    operands = operands_of(own)
    if len(operands.arguments) < 2 or operands.facts[0].dims != call.operand.dims:
        return FALSE
    facts = [operands.fact(x) for x in operands.arguments]
    if own.name == "add":
        return disjunction(*map(_is_endless, facts))
    if len(facts) != 3:
        return FALSE
    condition, first, second = (facts[1], facts[2], facts[0]) if own.name == "masked_fill" else facts
    if not isinstance(condition.value, Formula):
        return FALSE
    return disjunction(
        conjunction(condition.value, _is_endless(first)), conjunction(~condition.value, _is_endless(second))
    )


def _is_endless(fact: OpenFact) -> Formula:
    return fact.value.where(lambda v: v == -math.inf) if isinstance(fact.value, Cases) else FALSE
