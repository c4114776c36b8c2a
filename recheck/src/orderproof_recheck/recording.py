"""The check of one recording: its steps, the branches that it took, and its output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from orderproof_recheck.common_numbers import without_common_numbers
from orderproof_recheck.conditions import without_open_factors
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import Cases, Fact, Predicates, axis, index
from orderproof_recheck.largest_scores import note_largest
from orderproof_recheck.logic.decision import Decision
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, every, holds, less, opposite, some
from orderproof_recheck.logic.notation import read_formula, require, written, written_term
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import integer
from orderproof_recheck.loops import LOOP_OPERATORS, leave_inside, loop_step
from orderproof_recheck.reading import Facts, read_step, step_nodes
from orderproof_recheck.rules import OPERATORS
from orderproof_recheck.rules.extremes import note_part_of_running, note_place, note_whole_row
from orderproof_recheck.rules.triangular import has_unit_diagonal
from orderproof_recheck.setting import Count, Obligation, Setting
from orderproof_recheck.statements import (
    BATCH,
    FUNCTIONS,
    LEAST_SIZE,
    TOKENS,
    UNIFORM,
    Statement,
    UniformInputs,
    for_inputs,
    input_fact,
)
from orderproof_recheck.steps import Derived, Step
from orderproof_recheck.sums_of_zeros import zeros_known_of_operand
from orderproof_recheck.values_of_a_run import with_values_of_a_run

MOST_AXES = 4  # of a tensor whose corners are looked at


@dataclass
class Range:
    """The parts that all recordings of a range of lengths share."""

    statement: Statement
    least: int  # [tokens]
    greatest: int | None  # [tokens]
    conditions: tuple[Formula, ...]
    assumptions: frozenset[str]
    decision: Decision
    fill: bool  # write the obligations instead of comparing them

    @property
    def premises(self) -> tuple[Formula, ...]:
        """The premises on the sizes."""
        end = [] if self.greatest is None else [at_most(TOKENS, self.greatest)]
        return (at_most(LEAST_SIZE, BATCH), at_most(self.least, TOKENS), *end, *self.conditions)

    def setting(self, extra: Sequence[Formula]) -> Setting:
        """The setting of a list of steps."""
        functions = set(FUNCTIONS).union(*(f.functions for f in (*self.conditions, *extra)))
        names = frozenset({"tokens", "batch", *self.statement.symbols})
        counted = self.statement.counted
        return Setting(self.decision, (*self.premises, *extra), self.assumptions, names, functions, counted)


@dataclass
class Recording:
    """The facts of a recording that was checked."""

    data: dict[str, Any]
    setting: Setting
    facts: dict[str, Facts]
    roles: dict[str, str]
    uniform: str | None
    statement: Statement


def check_recording(data: dict[str, Any], shared: Range) -> Recording | None:
    """The facts of a recording; None if its answers cannot be. Raises `CertificateError`."""
    statement = shared.statement
    roles = dict(data["inputs"])
    asked = Recording(data, shared.setting(statement.premises), {}, roles, None, statement)
    check_conditions(data, shared, asked.setting)
    check_steps(data["asked"], asked, fill=shared.fill)
    possible, answered = _answers(data, asked)
    uniform = data["uniform"]
    require(uniform is None or uniform in answered, "that the shared inputs are uniform is no answer")
    if not possible:
        require(not data["steps"] and data["output"] is None, "its answers cannot be, and it has steps")
        return None
    premises = tuple(for_inputs(p, uniform) for p in statement.premises)
    found = Recording(data, shared.setting(premises), {}, roles, uniform, statement)
    check_steps(data["steps"], found, fill=shared.fill)
    names = {step["node"] for step in data["steps"]}
    require(roles.keys() <= names, "an input is no step")
    _check_output(data["output"], found)
    return found


def check_conditions(data: Mapping[str, Any], shared: Range, setting: Setting) -> None:
    """The conditions of the recording hold for every length of the range."""
    for condition in map(read_formula, data["conditions"]):
        follows = shared.decision.implies(every(*shared.premises), without_open_factors(condition))
        require(follows, "a condition of a recording does not hold for every length of its range")


def check_steps(steps: Sequence[dict[str, Any]], recording: Recording, *, fill: bool) -> None:
    """Check steps in order. Raises `CertificateError`, naming the first that does not follow."""
    for number, data in enumerate(steps, start=1):
        with naming_the_step(data, number):
            require(data["node"] not in recording.facts, "its name is taken")
            recording.facts[data["node"]] = check_step(data, recording, recording.facts, recording.setting, fill=fill)
    require(recording.setting.loops.active is None, "a loop has no end")


@contextmanager
def naming_the_step(data: Mapping[str, Any], number: int) -> Iterator[None]:
    """Raise `CertificateError` with the step for an error about it."""
    try:
        yield
    except (CertificateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        where = f"{str(data.get('node'))[:60]}, {str(data.get('operator'))[:60]}"
        raise CertificateError(f"step {number} ({where}) does not follow: {str(error)[:300]}") from error


def check_step(
    data: dict[str, Any], recording: Recording, facts: dict[str, Facts], setting: Setting, *, fill: bool
) -> Facts:
    """The claimed facts of a step, if they follow. Raises `CertificateError`."""
    if data["operator"] in LOOP_OPERATORS:
        step, found = loop_step(data, facts, setting)
    else:
        step, found = _step(data, recording, facts, setting)
    check_needs(data, step, setting, fill=fill)
    leave_inside(data, facts, setting)
    if data["operator"] == "input" or not setting.of_inputs.isdisjoint(step_nodes(data)):
        setting.of_inputs.add(data["node"])
    return found if isinstance(data["fact"], list) else found[0]


def _step(
    data: dict[str, Any], recording: Recording, facts: Mapping[str, Facts], setting: Setting
) -> tuple[Step, list[Fact]]:
    step = read_step(data, facts, setting)
    if step.operator == "getitem":
        whole, place = step.args
        require(isinstance(whole, list) and type(place) is int and 0 <= place < len(whole), "it is no part of several")
        derived = [Derived.of_element(whole[place])]
        step.largest = {0: whole[place].largest}
        note_part_of_running(step, whole[place], place)
        require(whole[place].axes == step.claim.axes and whole[place].dtype == step.claim.dtype, "another tensor")
    elif step.operator in ("input", "parameter", "buffer"):
        derived = [_given(step, recording)]
    else:
        known = step.operator.startswith("aten.") and step.name in OPERATORS
        require(known, "its operator has no rule in the recheck")
        step.may_wrap = OPERATORS[step.name].may_wrap
        rule = OPERATORS[step.name].rule
        note_place(step)
        derived = with_values_of_a_run(step, rule, without_common_numbers(step, rule, rule(step)))
        note_largest(step)
        step.zeros_known = zeros_known_of_operand(step, rule)
        step.unit_diagonal = has_unit_diagonal(step)
        step.require_all_read()
    for claim in step.claims:
        new = claim.functions - setting.functions - {step.node}
        require(not new, "its fact has a function that nothing defines")
    is_new = step.node not in setting.functions
    checked = step.check(derived)
    if is_new:
        note_whole_row(step)
    return step, checked


def check_needs(data: dict[str, Any], step: Step, setting: Setting, *, fill: bool) -> None:
    """The obligations that the certificate lists are those of the step."""
    needs = []
    for one in dict.fromkeys(step.obligations):
        setting.obligations.setdefault(one, len(setting.obligations))
        needs.append([[written_term(s) for s in one.sizes], written(one.given), written(one.shown)])
    if fill:
        data["needs"] = needs
    require(data["needs"] == needs, "its obligations are not those that the certificate lists")


def _given(step: Step, recording: Recording) -> Derived:
    """The fact about an input, a parameter or a buffer."""
    claim = step.claim
    require(not step.kwargs and len(step.args) == 1, "it has other arguments")
    if step.operator == "input":
        role = recording.roles.get(step.node)
        require(role is not None and step.args == [role], "it is an input without a role")
        assert role is not None
        return Derived.of_element(input_fact(claim, role, recording.statement, recording.uniform))
    require(step.node not in recording.roles and isinstance(step.args[0], str), "it is an input")
    fixed = all(size.is_integer for size in claim.sizes)
    require(fixed, "a stored tensor has an open size")
    if step.operator == "parameter":
        return Derived(Predicates())
    if claim.value is not None:  # the certificate says what is stored
        own = {f"x{k}" for k in range(len(claim.sizes))}
        require({v.fields[0] for v in claim.variables} <= own, "a stored value depends on the inputs")
        require(claim.functions <= {step.node}, "a stored value depends on the inputs")
        if claim.functions:
            return Derived(Predicates())
        if isinstance(claim.value, Cases):
            _check_cases(claim.value, claim, step)
        return Derived.of_value(claim.value, claim.dtype)
    require(claim.same is TRUE and claim.zero is FALSE and claim.hidden is FALSE, "a stored tensor without its value")
    require(claim.ordinary in (TRUE, FALSE), "a stored tensor without its value")
    return Derived(claim.predicates)


def _check_cases(value: Cases, claim: Fact, step: Step) -> None:
    """Each element has one number. Raises `CertificateError`."""
    conditions = [condition for condition, _ in value.pairs]
    decision = step.setting.decision
    within = every(*(f for k, n in enumerate(claim.sizes) for f in (at_most(0, index(k)), less(index(k), n))))
    require(decision.implies(within, some(*conditions)), "the cases of a stored value leave elements out")
    pairs = itertools.combinations(conditions, 2)
    require(all(decision.implies(every(within, *pair), FALSE) for pair in pairs), "the cases of a stored value overlap")


def _answers(data: Mapping[str, Any], asked: Recording) -> tuple[bool, set[str]]:
    """True if the answers can be; and the kinds of uniform inputs of which they say that the shared inputs are."""
    uniform: set[str] = set()
    possible = True
    answered: dict[object, bool] = {}
    denied: list[Count] = []  # not all of whose elements are true
    for node, answer in data["questions"]:
        require(type(answer) is bool, "an answer is true or false")
        fact = asked.facts.get(node)
        require(isinstance(fact, Fact) and not fact.sizes, "a question is no step with one element")
        assert isinstance(fact, Fact)
        if fact.value is (FALSE if answer else TRUE):
            possible = False
        counts = asked.setting.counts.items()
        about: list[object] = [fact.value] if isinstance(fact.value, Formula) else []
        about += [(c.formula, c.sizes) for name, c in counts if fact.value is holds(f"all of {name}")]
        possible = possible and all(answered.setdefault(one, answer) is answer for one in about)
        for name, count in counts:
            if fact.value is not holds(f"all of {name}"):
                continue
            always = asked.setting.discharge(Obligation(count.sizes, TRUE, count.formula))
            possible = possible and not (always and not answer) and not (answer and _has_false_corner(count, asked))
            if answer:
                uniform |= {name for name, kind in UNIFORM.items() if _says(count, kind, asked)}
            else:
                denied.append(count)
    contradicted = any(_follows(count, UNIFORM[name], asked) for count in denied for name in uniform)
    return possible and not contradicted, uniform


def _says(count: Count, kind: UniformInputs, asked: Recording) -> bool:
    """True if shared inputs are of a kind where all elements of a tensor are true, some of which are those inputs'."""
    if count.formula is kind.element and count.sizes == kind.sizes:
        return True
    discharge = asked.setting.discharge
    if count.sizes and count.sizes == kind.sizes[:-1]:  # with pads on the right a real last token says so
        return discharge(Obligation(kind.sizes, count.formula, kind.element))
    outer, more = len(kind.sizes) - 1, count.sizes[-1] - kind.sizes[-1] if count.sizes else integer(-1)
    if count.sizes[:-1] != kind.sizes[:-1] or not more.is_integer or more.constant < 0:
        return False
    places = (Replacement({axis(outer): index(outer) + k}) for k in (0, more.constant))
    return any(discharge(Obligation(kind.sizes, place.formula(count.formula), kind.element)) for place in places)


def _follows(count: Count, kind: UniformInputs, asked: Recording) -> bool:
    """True if all elements of a tensor are true where shared inputs are of a kind."""
    inner, outer = kind.sizes[:-1], len(kind.sizes) - 1
    if count.sizes not in (kind.sizes, inner):
        return False
    ends = [integer(0), kind.sizes[-1] - 1, *([index(outer)] if count.sizes == kind.sizes else [])]
    known = every(*(Replacement({axis(outer): end}).formula(kind.element) for end in ends))
    return asked.setting.discharge(Obligation(count.sizes, known, count.formula))


def _has_false_corner(count: Count, asked: Recording) -> bool:
    """True if the first or last element along each axis is false: not all of a tensor with elements are true."""
    discharge = asked.setting.discharge
    if len(count.sizes) > MOST_AXES or not all(discharge(Obligation((), TRUE, at_most(1, n))) for n in count.sizes):
        return False
    corners = itertools.product(*({integer(0): 0, n - 1: 0} for n in count.sizes))
    places = (Replacement({axis(k): x for k, x in enumerate(corner)}) for corner in corners)
    return any(discharge(Obligation((), TRUE, opposite(place.formula(count.formula)))) for place in places)


def _check_output(output: Mapping[str, Any], recording: Recording) -> None:
    """The fact about the output is at least what the law claims."""
    require(set(output) == {"node", "row", "token"}, "an output has other fields")
    fact, statement = recording.facts.get(output["node"]), recording.statement
    require(isinstance(fact, Fact), "the output is no step with one tensor")
    assert isinstance(fact, Fact)
    rows = [k for k, size in enumerate(fact.sizes) if size is BATCH]
    tokens = [k for k, size in enumerate(fact.sizes) if size is TOKENS]
    require([output["row"]] == rows, "the output has no such dimension of rows")
    require(output["token"] == (tokens[0] if tokens else None), "the output has no such dimension of tokens")
    token = index(tokens[0]) if tokens else statement.pooled
    require(token is not None, "the output has no dimension of tokens")
    assert token is not None
    goal = for_inputs(statement.shown, recording.uniform)
    goal = Replacement({axis(0): index(rows[0]), axis(1): token}).formula(goal)
    follows = recording.setting.discharge(Obligation(fact.sizes, goal, fact.same))
    require(follows, "the output need not agree where the law says so")
