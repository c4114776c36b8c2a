"""Values of integers and booleans in one run, where the two runs differ: `ids[i] == ids[j]` is true for i = j.

Lemma. In each run, such a tensor is a function of its indices, which may be another one in the other run. The rule of a
pointwise operator, or of one that moves elements, says what the value of its result is for any functions of its
operands: so it does for those of one run. What such a value says of an element holds in both runs, if it holds for all
functions. `certain` is a sufficient condition for that: each comparison of functions counts as false, but for that of a
function with itself, which is true where its arguments are equal.
A tensor that is chosen by a condition of a run is the first choice in both runs where the condition is certain, and
the second one where its negation is.

Within loops of open length nothing is followed: a tensor there is another function in each iteration.

Machine-checked (proofs/symbolic/steps.v): pointwise_step, where_step.
Not machine-checked: that `certain` implies its formula for all functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import torch
from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    FALSE,
    And,
    Apply,
    AtMostZero,
    EqualsZero,
    Formula,
    Or,
    Term,
    Variable,
    apply,
    as_term,
    conjunction,
    disjunction,
    equal,
    holds,
)
from orderproof.theorems.facts.numbers import INTEGERS
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, Value, as_cases, index
from orderproof.theorems.operators.pointwise.operands import operands_of
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.overflow import OF_A_RUN, fits

Rule = Callable[[OpenOperation], OpenFacts]
MOVES = {
    "unsqueeze", "squeeze", "transpose", "permute", "t", "mT", "expand", "expand_as", "view", "reshape", "_unsafe_view",
    "flatten", "unflatten", "slice", "select", "narrow", "repeat", "flip", "cat", "stack", "constant_pad_nd", "pad",
    "tril", "triu", "alias", "clone", "contiguous", "detach", "lift_fresh", "movedim", "swapaxes", "view_as",
    "repeat_interleave",
}  # fmt: skip
COMPUTES = {
    "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "bitwise_not", "__and__", "bitwise_and", "logical_and", "__or__",
    "bitwise_or", "logical_or", "__xor__", "bitwise_xor", "logical_xor", "where", "masked_fill", "to", "_to_copy",
    "type_as", "add", "sub", "rsub", "mul", "div", "neg", "abs", "maximum", "minimum", "log", "exp", "clamp",
    "any", "all",
}  # fmt: skip


def with_values_of_a_run(call: OpenOperation, rule: Rule, result: OpenFacts) -> OpenFacts:
    """The fact about a result with what the values of its operands in one run say. The context keeps that value."""
    call.context.of_a_run.pop(call.node, None)
    if not isinstance(result, OpenFact) or result.value is not None or call.context.loops:
        return result
    try:
        value = _value(call, rule)
        result = _chosen(call, result)
    except NotCovered:  # nothing that could be followed: the result without it still holds
        return result
    if value is not None:
        result = _with_certain(result, value)
        call.context.of_a_run[call.node] = result, value
    return result


def value_of_a_run(call: OpenOperation, node: Node) -> Value | None:
    """The value of a tensor in one run, as a term or formula over functions of that run; None if it has none."""
    fact = call.fact(node)
    if fact.value is not None:
        return fact.value
    kept: tuple[OpenFact, Value] | None = call.context.of_a_run.get(node)
    if kept is not None and kept[0] is fact:
        return kept[1]
    indices = [index(k) for k in range(len(fact.sizes))]
    if fact.dtype is torch.bool:
        return holds(f"{node.name}{OF_A_RUN}", *indices)
    return apply(f"{node.name}{OF_A_RUN}", *indices) if fact.dtype in INTEGERS else None


def _with_value(call: OpenOperation, node: Node) -> OpenFact:
    """The fact about an operand in one run. Raises `NotCovered`."""
    value = value_of_a_run(call, node)
    if value is None:
        raise NotCovered("the value of an operand is not known")
    fact = call.fact(node)
    return OpenFact(fact.dims, fact.dtype, value=value)


def _value(call: OpenOperation, rule: Rule) -> Value | None:
    """The value of the result in one run, if those of all operands are known."""
    nodes = call.node.all_input_nodes
    if call.name not in MOVES | COMPUTES or not nodes:
        return None
    if any(value_of_a_run(call, node) is None for node in nodes):
        return None
    found = call.checked(rule(replace(call, facts={**call.facts, **{x: _with_value(call, x) for x in nodes}})))
    if not isinstance(found, OpenFact):
        return None
    own = {name for x in nodes for name in _functions(_with_value(call, x))}
    if call.name in ("any", "all") and not _functions(found) <= own:
        return None  # of more than a few, the rule names a function that both runs share
    wraps = isinstance(found.value, Term) and not fits(call.context, found.value, found.sizes, call.dtype)
    return None if wraps else found.value


def _functions(fact: OpenFact) -> frozenset[str]:
    return frozenset().union(*(part.functions for part in fact.parts))


def _chosen(call: OpenOperation, result: OpenFact) -> OpenFact:
    """The result of `where` or `masked_fill`, where its condition is certain."""
    place = {"where": 0, "masked_fill": 1}.get(call.name)
    condition = None if place is None else call.node.args[place]
    if not isinstance(condition, Node) or call.fact(condition).value is not None:
        return result
    surrogate = {condition: _with_value(call, condition)}
    operands = operands_of(replace(call, facts={**call.facts, **surrogate}))
    test = operands.fact(condition).value
    if not isinstance(test, Formula) or operands.facts[0].dims != result.dims:
        return result
    others = [x for k, x in enumerate(operands.arguments) if k != place]
    first, second = others if call.name == "where" else others[::-1]
    for sure, fact in ((certain(test), operands.fact(first)), (certain(~test), operands.fact(second))):
        ranges = fact.ranges()
        result = _stronger(
            result, sure & fact.same, sure & ranges.hidden, sure & ranges.zero, sure & ranges.finite,
            sure & ranges.at_most_ordinary,
        )  # fmt: skip
    return result


def _with_certain(result: OpenFact, value: Value) -> OpenFact:
    """The result with what its value in one run says for all functions of that run."""
    cases = as_cases(value)
    if cases is None:
        return result
    ranges = OpenFact(result.dims, result.dtype, value=cases).ranges()
    return _stronger(
        result, disjunction(*(certain(condition) for condition, _ in cases.pairs)), certain(ranges.hidden),
        certain(ranges.zero), certain(ranges.finite), certain(ranges.at_most_ordinary),
    )  # fmt: skip


def _stronger(
    fact: OpenFact, same: Formula, hidden: Formula, zero: Formula, ordinary: Formula, low: Formula
) -> OpenFact:
    """The fact, which also holds where these formulas do."""
    hidden = fact.hidden | hidden
    unbounded = fact.unbounded if fact.unbounded is FALSE else fact.unbounded & ~(ordinary | hidden)
    return replace(
        fact, same=fact.same | same, hidden=hidden, zero=fact.zero | zero, unbounded=unbounded,
        low=fact.low if unbounded is FALSE else fact.low | low,
    )  # fmt: skip


def certain(formula: Formula) -> Formula:
    """A formula without functions of a run that implies this one for all of them."""
    if not any(name.endswith(OF_A_RUN) for name in formula.functions):
        return formula
    if isinstance(formula, And | Or):
        join = conjunction if isinstance(formula, And) else disjunction
        return join(*map(certain, formula.parts[0]))
    if isinstance(formula, EqualsZero | AtMostZero):
        return _where_equal(formula)
    return FALSE


def _where_equal(comparison: EqualsZero | AtMostZero) -> Formula:
    """Where the functions in a comparison are read at the same indices, if it is true there whatever they are."""
    (term,) = comparison.parts
    functions = [atom for atom, _ in term.summands if isinstance(atom, Apply)]
    for one, other in permutations(functions, 2):
        pairs = [(x, y) for x, y in zip(one.parts[1], other.parts[1], strict=False) if x is not y]
        rest = Substitution(dict(place for x, y in pairs for place in _solved(x, y))).term(term)
        if rest.is_constant and (rest.constant == 0 or (isinstance(comparison, AtMostZero) and rest.constant < 0)):
            return conjunction(*(equal(x, y) for x, y in pairs))
    return FALSE


def _solved(x: Term, y: Term) -> list[tuple[Variable, Term]]:
    """A variable of x that is another term where x = y; none if no variable has the factor 1 or -1."""
    for atom, factor in x.summands:
        if isinstance(atom, Variable) and abs(factor) == 1 and atom not in y.variables:
            return [(atom, as_term(atom) - (x - y) * factor)]
    return []
