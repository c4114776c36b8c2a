"""Loops of open length: an induction over the iterations.

    loop.state(initial, i, n)          a tensor at the begin of iteration i; its fact F(i) is the invariant
    ...                                the steps of an iteration, with i as a symbol from 0 to n - 1
    loop.end([state], [next], i, n)    the tensors after n iterations
    loop.stack(end, value, dim, i, n)  the values of all iterations along a new dimension

The initial tensor must fulfil F(0), and the next one F(i + 1) if the states fulfil F(i). Then the tensors after the
loop fulfil F(n), and what a step says of a value in the loop holds for the index of each iteration. Outside of the
loop, no step reads what is inside. That every iteration runs these steps is an assumption, which a certificate states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orderproof_recheck.assumptions import LOOP_ASSUMPTION
from orderproof_recheck.facts import Cases, Fact, Predicates
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import FALSE, Formula, at_most
from orderproof_recheck.logic.notation import read_term, require
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Term, integer, variable
from orderproof_recheck.reading import Facts, read_step
from orderproof_recheck.rules.movement import single
from orderproof_recheck.setting import Inside, Loop, Setting
from orderproof_recheck.statements import BATCH, TOKENS
from orderproof_recheck.steps import Derived, Step

STATE, END, STACK = "loop.state.default", "loop.end.default", "loop.stack.default"
LOOP_OPERATORS = (STATE, END, STACK)
INDEX = "step "  # the names of indices of loops begin so


def loop_step(data: Mapping[str, Any], facts: dict[str, Facts], setting: Setting) -> tuple[Step, list[Fact]]:
    """A step of a loop, and the facts about its results. Raises `CertificateError`."""
    index, count = _index_and_count(data)
    if data["operator"] == STATE:
        return _state(data, facts, setting, index, count)
    if data["operator"] == END:
        return _end(data, facts, setting, index, count)
    return _stack(data, facts, setting, index, count)


def leave_inside(data: Mapping[str, Any], facts: dict[str, Facts], setting: Setting) -> None:
    """Note a step of an iteration; after the end of the loop, no step outside reads what is inside."""
    loop = setting.loops.active
    if loop is None:
        return
    if data["operator"] != END:
        loop.inside.append(data["node"])
        loop.started = loop.started or data["operator"] != STATE
        return
    for name in loop.inside:
        facts[name] = Inside(facts[name])
    setting.loops.closed[data["node"]] = loop
    setting.loops.active = None


def _index_and_count(data: Mapping[str, Any]) -> tuple[Term, Term]:
    """The index of a loop and the number of its iterations, the last arguments of a step."""
    require(not data["kwargs"] and len(data["args"]) >= 3, "it has other arguments")
    index, count = (read_term(x["size"] if isinstance(x, dict) else x) for x in data["args"][-2:])
    names = [str(v.fields[0]) for v in index.variables]
    symbol = len(names) == 1 and names[0].startswith(INDEX) and index is variable(names[0])
    require(symbol, "the index of a loop is no symbol")
    sizes = BATCH.variables | TOKENS.variables
    require(count.variables <= sizes and not count.functions, "the number of iterations is no size")
    return index, count


def _plain_step(data: Mapping[str, Any], facts: dict[str, Facts], setting: Setting) -> Step:
    return read_step({**data, "args": data["args"][:-2]}, facts, setting)


def _state(
    data: Mapping[str, Any], facts: dict[str, Facts], setting: Setting, index: Term, count: Term
) -> tuple[Step, list[Fact]]:
    loops = setting.loops
    if loops.active is None:
        (name,) = (str(v.fields[0]) for v in index.variables)
        require(name not in loops.used | setting.names, "its index is in use")
        loops.used.add(name)
        loops.active = Loop(index, count)
    stated = any(text.startswith(LOOP_ASSUMPTION) for text in setting.assumptions)
    require(stated, f"it needs the assumption: {LOOP_ASSUMPTION}")
    loop = loops.active
    known = loop.index is index and loop.count is count and not loop.started
    require(known, "a state of a loop is at another place than its begin")
    step = _plain_step(data, facts, setting)
    require(len(step.args) == len(step.claims) == 1, "it has other arguments")
    initial, claim = step.fact(0), step.claim
    require(claim.value is None and claim.dtype == initial.dtype, "an invariant is of another kind")
    plain = claim.hidden is FALSE and claim.predicates.low is FALSE  # iterations may scale what is hidden
    require(plain, "an invariant of a loop says what is hidden")
    step.need(at_most(0, count), "a loop may have a negative number of iterations")
    step.check_form(claim, step.shape)
    _follows(step, at_index(claim, index, integer(0)), initial)
    loop.states.append(data["node"])
    loop.invariants.append(claim)
    loop.shapes.append(step.shape)
    return step, [claim]


def _end(
    data: Mapping[str, Any], facts: dict[str, Facts], setting: Setting, index: Term, count: Term
) -> tuple[Step, list[Fact]]:
    loop = setting.loops.active
    require(loop is not None and loop.index is index and loop.count is count, "it ends another loop")
    assert loop is not None
    require(data["args"][0] == [{"node": name} for name in loop.states], "it ends a loop with other states")
    step = _plain_step(data, facts, setting)
    (_, following) = step.args
    require(len(following) == len(step.claims) == len(loop.states), "it has another number of results")
    for fact, invariant, shape in zip(following, loop.invariants, loop.shapes, strict=True):
        require(isinstance(fact, Fact) and fact.dtype == invariant.dtype, "a loop computes another tensor")
        _follows(replace(step, shapes=[shape]), at_index(invariant, index, index + 1), fact)
    setting.loops.active = None  # what follows is outside
    after = [at_index(invariant, index, count) for invariant in loop.invariants]
    for fact, claim, shape, own in zip(after, step.claims, loop.shapes, step.shapes, strict=True):
        require(
            fact.axes == claim.axes and fact.dtype == claim.dtype and shape == own, "a loop computes another tensor"
        )
    found = step.check([Derived.of_element(fact) for fact in after])
    setting.loops.active = loop
    return step, found


def _stack(
    data: Mapping[str, Any], facts: dict[str, Facts], setting: Setting, index: Term, count: Term
) -> tuple[Step, list[Fact]]:
    end, value, dim = data["args"][:-2]
    loop = setting.loops.closed.get(end["node"])
    require(loop is not None and loop.index is index and loop.count is count, "it stacks values of another loop")
    assert loop is not None
    require(value["node"] in loop.inside, "it stacks a tensor that is not of its loop")
    inside = facts[value["node"]]
    fact = inside.facts if isinstance(inside, Inside) else None
    require(isinstance(fact, Fact), "it stacks several tensors")
    assert isinstance(fact, Fact)
    step = read_step({**data, "args": [dim]}, facts, setting)
    place = step.dim(dim, len(step.shape))
    require(
        len(step.shape) == len(fact.axes) + 1 and step.equal(step.shape[place], count), "its result has another shape"
    )
    require(step.claim.dtype == fact.dtype, "its result has another dtype")
    step.check_form(step.claim, step.shape)
    rest = [step.digits(d) for d in range(len(step.shape)) if d != place]
    element = at_index(read(fact, rest, step.equal), index, single(step, place))
    return step, step.check([Derived.of_element(element)])


def _follows(step: Step, claim: Fact, derived: Fact) -> None:
    """A claim about a tensor follows from a fact about it. Raises `CertificateError`."""
    own = replace(step, claims=[claim], shapes=[step.shape])
    element = read(derived, own.all_digits(), own.equal)
    own.check([Derived.of_element(element)])


def at_index(fact: Fact, index: Term, term: Term) -> Fact:
    """The fact with a term in place of the index of a loop."""
    (symbol,) = index.variables
    replaced = Replacement({symbol: term})
    value = fact.value
    if isinstance(value, Cases):
        value = Cases(tuple((replaced.formula(c), number) for c, number in value.pairs))
    elif value is not None:
        value = replaced.formula(value) if isinstance(value, Formula) else replaced.term(value)
    return replace(fact, predicates=Predicates(*(replaced.formula(f) for _, f in fact.predicates.items())), value=value)
