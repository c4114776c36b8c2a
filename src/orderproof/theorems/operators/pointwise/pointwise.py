"""Operators that compute each element of their result from one element of each operand.

Lemma. Let C[i] = f(A[i], B[i], ...).
  1. C[i] agrees in both runs where all operands do. A product agrees, too, where a factor is zero and the other finite;
     `where` agrees where the chosen operand does, and a sum where one summand is -inf and the other no NaN or +inf.
     Of integers that both runs have, of which one choice is known, the others are some function of the indices.
  2. All operands moved along i give C moved along i; an operand that is the same for every i moves with the others.
     Tokens that meet numbers of their own index: nothing follows, here order enters.

Machine-checked (proofs/symbolic/steps.v): pointwise_step, product_step, where_step.
Machine-checked (proofs/rules/pointwise_lemma.v): pointwise_equivariant.
Machine-checked (proofs/symbolic/moved_axes.v): free_axis, still_meets_moved.
Not machine-checked: values by cases, which torch computes, and ranges of values.
"""

from __future__ import annotations

import math
from dataclasses import replace

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Formula, Term, apply, conditional, conjunction, disjunction, implication
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.numbers import INTEGERS
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact, index
from orderproof.theorems.operators.pointwise.known_values import known_value
from orderproof.theorems.operators.pointwise.operands import Operands, is_lowered, operands_of
from orderproof.theorems.operators.pointwise.value_ranges import either_of, ranges_of
from orderproof.theorems.operators.reduction.scan import sum_before
from orderproof.theorems.walks.endless_scores import zero_after_softmax
from orderproof.theorems.walks.largest_scores import never_the_largest
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

ANY_POINTWISE = operators(
    "<pointwise>", "to", "_to_copy", "type_as", "contiguous", "lift_fresh", "real", "imag", "alias", "detach", "clone",
    "_conj", "resolve_conj",
    "__and__", "__or__", "__xor__", "softplus", "polar", "complex", "prelu", "_prelu_kernel", "log_sigmoid", "multiply",
    "divide", "subtract", "where", "masked_fill", "clamp", "clip",
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
    same = disjunction(same, ranges.zero, _endless(call, operands))
    found = OpenFact(dims, call.dtype, same, None, ranges.hidden, ranges.zero, ranges.unbounded, ranges.low)
    if (zero := disjunction(zero_after_softmax(call), never_the_largest(call), _rectified(call))) is FALSE:
        return found
    unbounded, low = found.unbounded & ~zero, found.low & ~zero
    return replace(found, same=same | zero, zero=found.zero | zero, unbounded=unbounded, low=low)


def _rectified(call: OpenOperation) -> Formula:
    """Where the larger of zero and a number is zero, since the number is zero less one that is not negative."""
    node, high = call.node.args[0], call.argument(2, "max")
    bounded = call.name in ("clamp", "clamp_min") and call.argument(1, "min") == 0
    bounded = bounded and (high is None or (isinstance(high, int | float) and high >= 0))
    if (call.name != "relu" and not bounded) or not isinstance(node, Node) or not is_lowered(node):
        return FALSE
    before = call.fact(node.args[0])
    return before.ranges().zero if before.dims == call.operand.dims else FALSE


def _endless(call: OpenOperation, operands: Operands) -> Formula:
    """Where a sum is -inf, as one of its two summands is, and the other is no NaN and not +inf."""
    if call.name != "add" or call.node.kwargs or len(operands.arguments) != 2:
        return FALSE
    first, second = (operands.fact(x) for x in operands.arguments)
    found = []
    for one, other in ((first, second), (second, first)):
        if isinstance(one.value, Cases):
            ranges = other.ranges()
            found.append(one.value.where(lambda v: v == -math.inf) & (ranges.hidden | ranges.at_most_ordinary))
    return disjunction(*found)


@ANY_POINTWISE.moved
def moved_pointwise(call: MovedOperation) -> MovedFact:
    """Elementwise with broadcasting."""
    if call.name == "where" and len(call.shapes) > 1:
        raise NotCovered("the indices of true elements")
    if call.name in ("prelu", "_prelu_kernel") and len(call.fact(call.node.args[1]).dims) != call.rank:
        raise NotCovered("a slope for each channel")
    return call.broadcast(call.operands())


def _partly_known(call: OpenOperation, test: Formula, chosen: OpenFact, other: OpenFact) -> Term | None:
    """The value of integers of which one choice is known, as labels that are -100 at pads; others are a function."""
    ranges = (chosen.ranges(), other.ranges())
    if call.dtype not in INTEGERS or call.context.loops or any(r.finite is not TRUE for r in ranges):
        return None
    own = apply(call.node.name, *(index(k) for k in range(len(chosen.sizes))))
    if isinstance(chosen.value, Term) and other.value is None:
        return conditional(test, chosen.value, own)
    return conditional(test, own, other.value) if isinstance(other.value, Term) and chosen.value is None else None


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
        if same is TRUE and (partly := _partly_known(call, test, chosen, other)) is not None:
            return OpenFact(dims, call.dtype, value=partly)
        return OpenFact(
            dims, call.dtype, same, None, pick(a.hidden, b.hidden), pick(a.zero, b.zero),
            pick(a.unbounded, b.unbounded), pick(a.low, b.low),
        )  # fmt: skip
    same, found = conjunction(condition.same, chosen.same, other.same), either_of(a, b)
    return OpenFact(dims, call.dtype, same | found.zero, None, found.hidden, found.zero, found.unbounded, found.low)
