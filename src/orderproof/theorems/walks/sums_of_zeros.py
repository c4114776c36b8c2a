"""Sums that may be of zeros only, with their elements at other places: `e.sum(-1).unsqueeze(-1)`.

Where such a sum may be zero, the result may be. So a rule for what is the same in both runs says where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orderproof.logic.terms import FALSE, TRUE
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation

KEEP_ZEROS = {
    "view", "reshape", "_unsafe_view", "unflatten", "flatten", "transpose", "mT", "permute", "unsqueeze", "squeeze",
    "expand", "slice", "select", "clone", "contiguous", "to", "_to_copy", "sqrt",
    "mul", "div", "neg", "abs", "square",
}  # fmt: skip


def note_moved_sum(call: OpenOperation, rule: Callable[[OpenOperation], OpenFacts]) -> None:
    """Note where the elements of a sum that may be zero are in the result of an operator that keeps zeros."""
    context = call.context
    context.zero_places.pop(call.node, None)
    operands = call.node.all_input_nodes
    if call.name not in KEEP_ZEROS or len(operands) != 1 or not isinstance(call.facts[operands[0]], OpenFact):
        return
    (node,) = operands
    where = context.may_be_of_zeros(node)
    if where is FALSE:
        return
    fact = OpenFact(call.fact(node).dims, call.fact(node).dtype, same=~where)
    try:
        found = rule(replace(call, facts={**call.facts, node: fact}))
    except NotCovered:
        found = ()
    context.zero_places[call.node] = ~found.same if isinstance(found, OpenFact) else TRUE
