"""Operators that compute each element of their result from one element of each operand.

Lemma. Let C[i] = f(A[i], B[i], ...).
  1. C[i] agrees in both runs where all operands do. A product agrees, too, where a factor is zero and the other finite;
     `where` agrees where the chosen operand does.
  2. All operands moved along i give C moved along i; an operand that is the same for every i moves with the others.
     Tokens that meet numbers of their own index: nothing follows, here order enters.

Machine-checked (proofs/symbolic/steps.v): pointwise_step, product_step, where_step.
Machine-checked (proofs/rules/pointwise_lemma.v): pointwise_equivariant.
Machine-checked (proofs/symbolic/moved_axes.v): free_axis, still_meets_moved.
Not machine-checked: values by cases, which torch computes, and ranges of values.
"""

from __future__ import annotations

from orderproof.logic.terms import FALSE, Formula, conjunction, disjunction, implication
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.operators.pointwise.known_values import known_value
from orderproof.theorems.operators.pointwise.operands import Operands, operands_of
from orderproof.theorems.operators.pointwise.value_ranges import ranges_of
from orderproof.theorems.operators.reduction.scan import sum_before
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

ANY_POINTWISE = operators(
    "<pointwise>", "to", "_to_copy", "type_as", "contiguous", "lift_fresh", "real", "imag", "alias", "detach", "clone",
    "__and__", "__or__", "__xor__", "softplus", "polar", "prelu", "_prelu_kernel", "log_sigmoid", "multiply", "divide",
    "subtract", "where", "masked_fill", "clamp", "clip",
)  # fmt: skip


@ANY_POINTWISE.open
def pointwise(call: OpenOperation) -> OpenFact:
    """The fact about the result of a pointwise operator."""
    operands = operands_of(call)
    value = known_value(call, operands)
    dims = operands.facts[0].dims if operands.facts else ()  # `vmap` makes a tensor of a number
    if value is not None:
        return OpenFact(dims, call.dtype, value=value)
    if call.name in ("where", "masked_fill"):
        return _selection(call, operands)
    if (before := sum_before(call)) is not None:
        return before
    same = conjunction(*(fact.same for fact in operands.facts))
    ranges = ranges_of(call, [fact.ranges() for fact in operands.facts], operands)
    return OpenFact(
        dims, call.dtype, disjunction(same, ranges.zero), None, ranges.hidden, ranges.zero, ranges.unbounded,
        ranges.low,
    )  # fmt: skip


@ANY_POINTWISE.moved
def moved_pointwise(call: MovedOperation) -> MovedFact:
    """Elementwise with broadcasting."""
    if call.name == "where" and len(call.shapes) > 1:
        raise NotCovered("the indices of true elements")
    if call.name in ("prelu", "_prelu_kernel") and len(call.fact(call.node.args[1]).dims) != call.rank:
        raise NotCovered("a slope for each channel")
    return call.broadcast(call.operands())


def _selection(call: OpenOperation, operands: Operands) -> OpenFact:
    """`where` and `masked_fill`: the operand that the condition chooses."""
    first, second, third = (operands.fact(x) for x in operands.arguments)
    condition, chosen, other = (second, third, first) if call.name == "masked_fill" else (first, second, third)
    a, b = chosen.ranges(), other.ranges()
    dims = operands.facts[0].dims
    if isinstance(condition.value, Formula):
        test = condition.value

        def pick(x: Formula, y: Formula) -> Formula:
            return disjunction(conjunction(test, x), conjunction(~test, y))

        same = conjunction(implication(test, chosen.same), implication(~test, other.same))
        return OpenFact(
            dims, call.dtype, same, None, pick(a.hidden, b.hidden), pick(a.zero, b.zero),
            pick(a.unbounded, b.unbounded), pick(a.low, b.low),
        )  # fmt: skip
    hidden, zero = a.hidden & b.hidden, a.zero & b.zero
    unbounded = disjunction(a.unbounded, b.unbounded, (a.hidden | b.hidden) & ~hidden)
    same = conjunction(condition.same, chosen.same, other.same)
    low = FALSE if unbounded is FALSE else a.at_most_ordinary & b.at_most_ordinary
    return OpenFact(dims, call.dtype, same | zero, None, hidden, zero, unbounded, low)
