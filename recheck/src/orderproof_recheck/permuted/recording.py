"""The check of one recording of a theorem about permuted tokens: its steps, its branches, its output.

A step has a fact with the motion of each axis. Two further lists say what a step may use besides its operands:

    constants   steps that follow from sizes and indices alone, with their values; `everywhere` names those whose facts
                follow from these: booleans that are true of every index, or false of every index, and constants whose
                value is the same at the other indices of run 2, as that of the identity matrix is
    entries     [node, [operand, ...], causal]: the step is taken with these constants made the same for every token,
                and without the causal mask of fused attention, if `causal` is true
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orderproof_recheck.derivation import fact_lines
from orderproof_recheck.facts import Fact
from orderproof_recheck.logic.formulas import TRUE, Formula, opposite
from orderproof_recheck.logic.notation import require, written_term
from orderproof_recheck.operator import READS, Operator
from orderproof_recheck.permuted.ends import check_given, check_output, check_questions
from orderproof_recheck.permuted.moved_fact import (
    FREE,
    Entry,
    MovedFact,
    MovedFacts,
    MovedRecording,
    read_moved_fact,
)
from orderproof_recheck.permuted.moved_step import check_claims, check_value
from orderproof_recheck.reading import STEP_FIELDS, Facts, nodes_in, read_step, step_nodes
from orderproof_recheck.recording import (
    Range,
    Recording,
    check_conditions,
    check_needs,
    check_steps,
    naming_the_step,
)
from orderproof_recheck.rules import OPERATORS
from orderproof_recheck.setting import Obligation
from orderproof_recheck.statements import TOKENS
from orderproof_recheck.steps import Derived, Step


def check_moved_recording(data: dict[str, Any], shared: Range) -> MovedRecording:
    """The facts of a recording. Raises `CertificateError`."""
    setting = shared.setting(())
    check_conditions(data, shared, setting)
    constants = _constants(data, shared)
    found = MovedRecording(
        data, setting, dict(data["inputs"]), _entries(data["entries"]), frozenset(data["everywhere"]),
        stored=constants.facts, premises=_stored(data),
    )  # fmt: skip
    for number, step in enumerate(data["steps"], start=1):
        with naming_the_step(step, number):
            require(step["node"] not in found.facts, "its name is taken")
            found.facts[step["node"]] = _check_step(step, found, fill=shared.fill)
    require(found.roles.keys() | found.entries.keys() | found.everywhere <= found.facts.keys(), "an input is no step")
    check_questions(data["questions"], found)
    check_output(data["output"], found)
    return found


def _entries(data: Sequence[Any]) -> dict[str, Entry]:
    found = {node: Entry(frozenset(constants), causal) for node, constants, causal in data}
    require(len(found) == len(data), "order is taken out at a step several times")
    require(all(type(entry.causal) is bool for entry in found.values()), "expected true or false")
    return found


def _constants(data: Mapping[str, Any], shared: Range) -> Recording:
    """The values of constants, of which facts follow for some."""
    graph = {step["node"]: step for step in data["steps"]}
    constants = Recording(dict(data), shared.setting(()), {}, {}, None, shared.statement)
    for step in data["constants"]:
        fields = ("operator", "args", "kwargs", "shape", "dtype")
        matching = all(step[name] == graph[step["node"]][name] for name in fields)
        require(matching and step["operator"] != "input", "a constant is no step of the graph")
    check_steps(data["constants"], constants, fill=shared.fill)
    for node in data["everywhere"]:
        fact = constants.facts.get(node)
        require(isinstance(fact, Fact) and fact.value is not None, "a constant has no value")
    return constants


def _stored(data: Mapping[str, Any]) -> list[str]:
    return [
        f"{step['args'][0]}: stored, {' '.join(fact_lines(step['fact']))}"
        for step in data["constants"]
        if step["operator"] == "buffer"
    ]


def _check_step(data: dict[str, Any], recording: MovedRecording, *, fill: bool) -> MovedFacts:
    require(set(data) == {*STEP_FIELDS, "reordered"}, "a step has other fields")
    several = isinstance(data["fact"], list)
    listed = data["fact"] if several else [data["fact"]]
    claims = [read_moved_fact(claim, dtype) for claim, dtype in zip(listed, data["dtype"], strict=True)]
    name = data["node"]
    if not recording.from_inputs.isdisjoint(step_nodes(data)) or data["operator"] == "input":
        recording.from_inputs.add(name)
    step, operands = _decoded(data, recording, [claim.form() for claim in claims])
    if step.operator in ("input", "parameter", "buffer"):
        check_given(step, claims[0], recording)
    elif name in recording.everywhere:
        require(len(claims) == 1, "it has several results")
        _check_by_value(step, claims[0], recording)
    else:
        _check_operator(step, claims, operands)
    for claim, shape in zip(step.claims, step.shapes, strict=True):
        step.check_form(claim, shape)
    check_needs(data, step, recording.setting, fill=fill)
    reordered = list(map(written_term, step.reordered))
    if fill:
        data["reordered"] = reordered
    require(data["reordered"] == reordered, "run 2 takes other rows in another order")
    return claims if several else claims[0]


def _decoded(
    data: dict[str, Any], recording: MovedRecording, claims: Sequence[Fact]
) -> tuple[Step, dict[str, MovedFact]]:
    """The step with facts whose elements can be read, and the facts about the operands by the names that mark them."""
    entry = recording.entries.get(data["node"])
    operands: dict[str, MovedFact] = {}
    facts: dict[str, Facts] = {}
    for name in dict.fromkeys(step_nodes(data)):
        require(name in recording.facts, "it reads a node that no earlier step has")
        own = recording.facts[name]
        listed = own if isinstance(own, list) else [own]
        if entry is not None and name in entry.constants:
            require(name not in recording.from_inputs, "order is taken out of what depends on an input")
            listed = [_without_order(fact) for fact in listed]
        names = [f"element of {name}.{k}" for k in range(len(listed))]
        operands |= dict(zip(names, listed, strict=True))
        marked = [fact.marked(mark) for fact, mark in zip(listed, names, strict=True)]
        facts[name] = marked if isinstance(own, list) else marked[0]
    forms = [{"axes": claim} for claim in _written_axes(data)]
    plain = {key: data[key] for key in STEP_FIELDS} | {"fact": forms if isinstance(data["fact"], list) else forms[0]}
    step = read_step(plain, facts, recording.setting)
    require(len(step.claims) == len(claims), "it has another number of results")
    if entry is not None:
        _take_order_out(step, entry, data)
    return step, operands


def _written_axes(data: Mapping[str, Any]) -> list[Any]:
    return [fact["axes"] for fact in (data["fact"] if isinstance(data["fact"], list) else [data["fact"]])]


def _take_order_out(step: Step, entry: Entry, data: Mapping[str, Any]) -> None:
    """Without the causal mask of fused attention."""
    read = {node for x in (data["args"], *data["kwargs"].values()) for node in nodes_in(x)}
    require(entry.constants <= read and (entry.constants or entry.causal), "order is taken out of another operand")
    if entry.causal:
        require(step.name == "scaled_dot_product_attention", "order is taken out of another operator")
        step.args = [False if k == 5 else x for k, x in enumerate(step.args)]
        step.kwargs = {**step.kwargs, **({"is_causal": False} if "is_causal" in step.kwargs else {})}


def _without_order(fact: MovedFact) -> MovedFact:
    """The fact about a constant that is made the same for every token."""
    pairs = zip(fact.motions, fact.sizes, strict=True)
    return replace(fact, motions=tuple(FREE if size.variables & TOKENS.variables else m for m, size in pairs))


def _check_operator(step: Step, claims: Sequence[MovedFact], operands: Mapping[str, MovedFact]) -> None:
    """The claims follow from the form of the operator, or from operands that are the same in both runs."""
    if step.operator == "getitem":
        whole, place = step.args
        require(isinstance(whole, list) and type(place) is int and 0 <= place < len(whole), "it is no part of several")
        require(whole[place].axes == step.claim.axes and whole[place].dtype == step.claim.dtype, "another tensor")
        operator = Operator(lambda _: [Derived.of_element(whole[place])], READS)
    else:
        known = step.operator.startswith("aten.") and step.name in OPERATORS
        require(known, "its operator has no rule in the recheck")
        operator = OPERATORS[step.name]
        if all(f.is_unmoved for f in operands.values()) and all(claim.is_still for claim in claims):
            _check_same(step)
            return
    permuted = operator.permuted
    require(permuted is not None, "its operator has no form: it is applied to tensors that move")
    assert permuted is not None
    if permuted.others_are_whole:
        _make_whole(step, operands)
    derived = (permuted.rule or operator.rule)(step)
    if step.operator != "getitem":
        step.require_all_read()
    check_claims(step, derived, claims, operands, permuted)


def _check_by_value(step: Step, claim: MovedFact, recording: MovedRecording) -> None:
    """The claim follows from the value at each index, whatever the operands are said to be."""
    known = recording.stored[step.node]
    assert isinstance(known, Fact)
    assert known.value is not None
    require(known.axes == claim.axes and known.dtype == claim.dtype, "a constant has other axes than its value")
    if isinstance(known.value, Formula):
        always = [Obligation(known.sizes, TRUE, shown) for shown in (known.value, opposite(known.value))]
        if any(map(recording.setting.discharge, always)):
            return
    check_value(step, claim, known.value)


def _check_same(step: Step) -> None:
    """The same operands give the same result."""
    step.args = [_whole(x) for x in step.args]
    step.kwargs = {name: _whole(x) for name, x in step.kwargs.items()}
    derived = OPERATORS[step.name].rule(step)
    step.require_all_read()
    require(len(derived) == len(step.claims) == len(step.shapes), "it has another number of results")
    require(all(one.predicates.same is TRUE for one in derived), "its result does not follow from its operands")


def _make_whole(step: Step, operands: Mapping[str, MovedFact]) -> None:
    first, *others = step.args
    names = {n for x in (*others, *step.kwargs.values()) if isinstance(x, Fact) for n in x.functions}
    require(all(operands[n].is_unmoved for n in names), "an operand that is used as a whole moves")
    step.args = [first, *map(_whole, others)]
    step.kwargs = {name: _whole(x) for name, x in step.kwargs.items()}


def _whole(argument: Any) -> Any:
    """A tensor that is the same in both runs, as rules for two runs take it."""
    if isinstance(argument, list):
        return [_whole(x) for x in argument]
    return MovedFact(argument.axes, argument.dtype, ()).form() if isinstance(argument, Fact) else argument
