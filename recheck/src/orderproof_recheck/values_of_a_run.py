"""Values of integers and booleans in one run, where the two runs differ: `ids[i] = ids[j]` is true for i = j.

In each run, such a tensor is a function of its indices, which may be another one in the other run. A rule that says
what the value of a result is, for any functions of its operands, says so of those of one run. A formula over such
functions holds in both runs where a sufficient condition without them does: each comparison of functions counts as
false, but for that of a function with itself, which is true where its arguments are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import (
    INTEGER_LIMITS,
    Cases,
    Fact,
    Predicates,
    Value,
    axis,
    cases_of,
    known,
    predicates_of,
)
from orderproof_recheck.limits import OF_A_RUN
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    AtMostZero,
    Every,
    Formula,
    IsZero,
    Some,
    equal,
    every,
    opposite,
    some,
)
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Apply, Atom, Term, Variable, of_atom
from orderproof_recheck.mask_sizes import ordinary_limit
from orderproof_recheck.rules.movement import broadcast_element
from orderproof_recheck.rules.pointwise import element_of
from orderproof_recheck.steps import Derived, Step, is_index

Rule = Callable[[Step], list[Derived]]
FOLLOWED = frozenset({
    "unsqueeze", "squeeze", "transpose", "permute", "t", "mT", "expand", "expand_as", "view", "reshape", "_unsafe_view",
    "flatten", "unflatten", "slice", "select", "narrow", "repeat", "flip", "cat", "stack", "constant_pad_nd", "pad",
    "tril", "triu", "alias", "clone", "contiguous", "detach", "lift_fresh", "movedim", "swapaxes", "view_as",
    "repeat_interleave",
    "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "bitwise_not", "__and__", "bitwise_and", "logical_and", "__or__",
    "bitwise_or", "logical_or", "__xor__", "bitwise_xor", "logical_xor", "where", "masked_fill", "to", "_to_copy",
    "type_as", "add", "sub", "rsub", "mul", "div", "neg", "abs", "maximum", "minimum", "log", "exp", "clamp",
    "any", "all",
})  # fmt: skip


def with_values_of_a_run(step: Step, rule: Rule, derived: list[Derived]) -> list[Derived]:
    """The facts derived about a result, with what the values of its operands in one run say."""
    if len(derived) != 1 or derived[0].value is not None or step.claim.value is not None or step.setting.loop_indices:
        return derived
    found = derived[0].predicates
    try:
        step.of_a_run = _value(step, rule)
        found = _chosen(step, found)
    except CertificateError:  # the rule says nothing of these values
        return derived
    if step.of_a_run is not None and (cases := cases_of(step.of_a_run)) is not None:
        own = predicates_of(cases, step.claim.dtype)
        same = some(*(certain(condition) for condition, _ in cases.pairs))
        low = TRUE if all(number < ordinary_limit() for _, number in cases.pairs) else own.at_most_ordinary
        parts = (own.zero, own.hidden, own.ordinary, low)
        found = _stronger(found, Predicates(same, *map(certain, parts)))
    return [Derived(found)]


def _with_value(fact: Any) -> Any:
    """A tensor among the arguments with its value in one run. Raises `CertificateError`."""
    if isinstance(fact, list):
        return [_with_value(x) for x in fact]
    if not isinstance(fact, Fact) or fact.value is not None:
        return fact
    if fact.of_a_run is None:
        raise CertificateError("the value of an operand is not known")
    return known(fact.axes, fact.dtype, fact.of_a_run)


def _value(step: Step, rule: Rule) -> Value | None:
    """The value of the result in one run, if those of all operands are known."""
    flat = [x for arg in (*step.args, *step.kwargs.values()) for x in (arg if isinstance(arg, list) else [arg])]
    tensors = [x for x in flat if isinstance(x, Fact)]
    unknown = any(x.value is None and x.of_a_run is None for x in tensors)
    if step.name not in FOLLOWED or not tensors or unknown:
        return None
    args, kwargs = _with_value(list(step.args)), {k: _with_value(v) for k, v in step.kwargs.items()}
    again = replace(step, args=args, kwargs=kwargs, obligations=[], bound=[], reordered=[], read=set(), largest={})
    (found,) = rule(again)
    value = found.value
    if step.name in ("any", "all") and not _is_of_operands(value, [_with_value(x) for x in tensors]):
        return None
    if value is None or not _variables(value) <= {axis(k) for k in range(len(step.claim.sizes))} | _symbols(value):
        return None
    if isinstance(value, Term) and step.claim.dtype in INTEGER_LIMITS:
        again.check_limits(value, step.claim.dtype, step.claim.sizes)
    step.obligations += again.obligations
    return value


def _is_of_operands(value: Value | None, operands: list[Fact]) -> bool:
    """True for a formula without functions that the operands do not have: not of a row of open length."""
    return isinstance(value, Formula) and value.functions <= frozenset().union(*(x.functions for x in operands))


def _variables(value: Value) -> frozenset[Variable]:
    parts = [condition for condition, _ in value.pairs] if isinstance(value, Cases) else [value]
    return frozenset().union(*(part.variables for part in parts))


def _symbols(value: Value) -> frozenset[Variable]:
    """The variables of a value that are no indices."""
    return frozenset(v for v in _variables(value) if not is_index(v))


def _chosen(step: Step, found: Predicates) -> Predicates:
    """The result of `where` or `masked_fill`, where its condition is certain."""
    place = {"where": 0, "masked_fill": 1}.get(step.name)
    condition = None if place is None else step.args[place]
    if not isinstance(condition, Fact) or condition.value is not None or condition.of_a_run is None:
        return found
    test = broadcast_element(step, _with_value(condition)).value
    first, second = (x for k, x in enumerate(step.args) if k != place)
    first, second = (first, second) if step.name == "where" else (second, first)
    if not isinstance(test, Formula):
        return found
    for sure, choice in ((certain(test), first), (certain(opposite(test)), second)):
        p = element_of(step, choice).predicates
        low = p.at_most_ordinary
        found = _stronger(found, Predicates(*(every(sure, f) for f in (p.same, p.zero, p.hidden, p.ordinary, low))))
    return found


def _stronger(found: Predicates, other: Predicates) -> Predicates:
    """The predicates that hold where one of the two says so."""
    pairs = zip(found.items(), other.items(), strict=True)
    return Predicates(*(some(first, second) for (_, first), (_, second) in pairs))


def certain(formula: Formula) -> Formula:
    """A formula without functions of a run that implies this one for all of them."""
    if not any(name.endswith(OF_A_RUN) for name in formula.functions):
        return formula
    match formula:
        case Every(fields=(parts,)):
            return every(*map(certain, parts))
        case Some(fields=(parts,)):
            return some(*map(certain, parts))
        case IsZero(fields=(term,)) | AtMostZero(fields=(term,)):
            return _where_equal(term, may_be_less=isinstance(formula, AtMostZero))
    return FALSE


def _where_equal(term: Term, *, may_be_less: bool) -> Formula:
    """Where two values of one function in a term are read at the same indices, if it is then zero (or less)."""
    functions = [atom for atom, _ in term.summands if isinstance(atom, Apply)]
    for one, other in permutations(functions, 2):
        pairs = [(x, y) for x, y in zip(one.fields[1], other.fields[1], strict=False) if x is not y]
        places: dict[Atom, Term] = dict(place for x, y in pairs for place in _solved(x, y))
        rest = Replacement(places).term(term)
        if rest.is_integer and (rest.constant == 0 or (may_be_less and rest.constant < 0)):
            return every(*(equal(x, y) for x, y in pairs))
    return FALSE


def _solved(x: Term, y: Term) -> list[tuple[Variable, Term]]:
    """A variable of x that is another term where x = y; none if no variable has the factor 1 or -1."""
    for atom, factor in x.summands:
        if isinstance(atom, Variable) and abs(factor) == 1 and atom not in y.variables:
            return [(atom, of_atom(atom) - (x - y) * factor)]
    return []
