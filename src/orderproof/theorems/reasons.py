"""Why the rules do not show that an output agrees: the operator, and a sentence that says what to change."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from torch.fx import Node

from orderproof.logic.terms import FALSE
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.walks.open_operation import OpenFacts
from orderproof.theorems.walks.operation import operator_of

MAX_TEXT = 60  # characters of a formula in a reason
NEAR = 60  # operators before the output that are looked at
_SOFTMAX = {"softmax", "_softmax", "_safe_softmax"}
_JOINS = {"cat", "stack"}
_PARTS = (
    "the rules show that both runs agree at some tokens only: compute all tokens by one operator, or in a loop "
    "`for i in range(n)`, where parts of the tokens are computed one by one"
)
_CONDITION = (
    "the rules show that both runs agree only under a condition on inputs or sizes: choose tokens by a mask, not by an "
    "index that is computed"
)
_NO_MASK = (
    "the rules know no mask of these scores: mask them by positions that are compared as integers, as `j <= i` or "
    "`torch.tril` does, and fill with float('-inf')"
)
_HIDDEN_ROW = (
    "a row of these scores may have no visible key, by what the rules know: let each token see itself, as "
    "`mask | torch.eye(n).bool()` does"
)
_NOTHING = (
    "no rule shows that both runs agree at any token after it: where it must not read tokens, multiply by zero or fill "
    "with -inf by a mask of positions that are compared as integers"
)


def why_not_shown(fact: OpenFact, node: Node, facts: Mapping[Node, OpenFacts]) -> tuple[Node, str]:
    """The operator that explains why an output is not shown to agree, and the sentence."""
    if fact.same is not FALSE:
        where = str(fact.same)
        if len(where) <= MAX_TEXT:
            return node, f"the rules show that both runs agree only where {where}"
        return node, _PARTS if operator_of(node) in _JOINS else _CONDITION
    for softmax in _softmaxes_before(node):
        scores, weights = (facts.get(x) for x in (softmax.args[0], softmax))  # type: ignore[arg-type]
        if isinstance(scores, OpenFact) and isinstance(weights, OpenFact) and scores.same is not FALSE:
            ranges = scores.ranges()
            if ranges.hidden is FALSE and ranges.low is FALSE:
                return softmax, _NO_MASK
            if weights.zero is FALSE:
                return softmax, _HIDDEN_ROW
    return node, _NOTHING


def _softmaxes_before(node: Node) -> Iterator[Node]:
    """The softmaxes near a node, the nearest first."""
    queue, seen = deque([node]), {node}
    while queue and len(seen) < NEAR:
        one = queue.popleft()
        if one.op == "call_function" and operator_of(one) in _SOFTMAX:
            yield one
        for operand in one.all_input_nodes:
            if operand not in seen:
                seen.add(operand)
                queue.append(operand)
