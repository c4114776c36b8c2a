"""The induction over layers: a theorem for the recorded layers is one for every number of them.

The invariant F is the fact about the result of the last recorded layer. What enters the first layer fulfils F; each
layer, given F, computes a result that fulfils F; layers exchange nothing else; and the output reads the last result
only. So F holds after any number of layers with the code of the recorded ones, in any order. `layer_kinds` checks that
the recording shows which these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import Fact
from orderproof_recheck.layer_kinds import check_kinds
from orderproof_recheck.logic.formulas import FALSE, TRUE
from orderproof_recheck.logic.notation import require
from orderproof_recheck.reading import Facts, step_nodes
from orderproof_recheck.recording import Recording, check_step
from orderproof_recheck.setting import Loops, Obligation


def check_depth(data: Mapping[str, Any], recording: Recording, *, fill: bool) -> None:
    """Check the induction of a recording. Raises `CertificateError`."""
    layers, steps = data["layers"], {step["node"]: step for step in recording.data["steps"]}
    require(set(data) == {"layers"} and len(layers) > 1, "an induction needs several layers")
    check_structure(layers, steps, recording.data["output"]["node"])
    last = recording.facts[layers[-1]["result"]]
    require(isinstance(last, Fact) and last.value is None, "the invariant is no fact with predicates")
    assert isinstance(last, Fact)
    plain = last.zero is FALSE and last.hidden is FALSE and last.ordinary is TRUE
    require(plain, "the invariant has other predicates than that the runs agree")
    _fulfils(recording, recording.facts[layers[0]["entry"]], last, "what enters the first layer")
    for number, layer in enumerate(layers, start=1):
        entered = recording.facts[layer["entry"]]
        if layer["steps"] is None:
            same = isinstance(entered, Fact) and entered.predicates == last.predicates and entered.value is None
            require(same, f"layer {number} was not checked with the invariant")
            result = recording.facts[layer["result"]]
        else:
            result = _checked_again(layer, steps, recording, last, fill=fill)
        _fulfils(recording, result, last, f"the result of layer {number}")


def _fulfils(recording: Recording, fact: Facts, invariant: Fact, what: str) -> None:
    message = f"{what} need not fulfil the invariant"
    require(isinstance(fact, Fact), message)
    assert isinstance(fact, Fact)
    require((fact.axes, fact.dtype) == (invariant.axes, invariant.dtype), message)
    require(fact.hidden is FALSE and fact.ordinary is TRUE and fact.common is None, message)
    require(recording.setting.discharge(Obligation(fact.sizes, invariant.same, fact.same)), message)


def _checked_again(
    layer: Mapping[str, Any], steps: Mapping[str, dict[str, Any]], recording: Recording, invariant: Fact, *, fill: bool
) -> Facts:
    """The fact about the result of a layer whose entry fulfils the invariant."""
    own = set(layer["nodes"])
    facts: dict[str, Facts] = {node: fact for node, fact in recording.facts.items() if node not in own}
    facts[layer["entry"]] = invariant
    before = recording.setting
    places = {node: place for node, place in before.places.items() if node not in own}
    setting = replace(before, functions=before.functions - own, places=places, obligations={}, loops=Loops())
    require([step["node"] for step in layer["steps"]] == layer["nodes"], "a layer has other steps than its nodes")
    for again in layer["steps"]:
        node = again["node"]
        recorded = steps[node]
        kept = {key: recorded[key] for key in recorded if key not in ("fact", "needs")}
        require(set(again) == {"node", "fact", "needs"}, "a step of a layer has other fields")
        data = {**kept, "fact": again["fact"], "needs": again["needs"]}
        try:
            facts[node] = check_step(data, recording, facts, setting, fill=fill)
        except CertificateError as error:
            raise CertificateError(f"in the induction step {node[:60]} does not follow: {error}") from error
        if fill:
            again["needs"] = data["needs"]
    require(setting.loops.active is None, "a loop has no end")
    return facts[layer["result"]]


def check_structure(layers: Sequence[Mapping[str, Any]], steps: Mapping[str, Mapping[str, Any]], output: str) -> None:
    """Layers exchange one tensor each, the output reads the last one only, and further layers are like these."""
    reads = {node: set(step_nodes(step)) for node, step in steps.items()}
    seen: set[str] = set()
    computed: set[str] = set()  # from the results of layers
    for number, layer in enumerate(layers):
        own = list(layer["nodes"])
        require(set(layer) == {"nodes", "entry", "result", "steps"}, "a layer has other fields")
        require(own and len(set(own)) == len(own) and seen.isdisjoint(own), "layers share nodes")
        require(set(own) <= steps.keys() and layer["entry"] not in own, "a layer has a node that is no step")
        operators = [steps[n]["operator"] for n in own]
        computes = all(one.startswith(("aten.", "loop.")) or one == "getitem" for one in operators)
        require(computes, "a layer contains an input")
        seen |= set(own)
        before = {layers[number - 1]["result"]} if number else set()
        outside = set().union(*(reads[n] for n in own)) - set(own)
        require(outside & computed <= before, "a layer reads another layer than the one before it")
        require(layer["entry"] in outside and (not number or {layer["entry"]} == before), "a layer has another entry")
        used = {n for node, operands in reads.items() if node not in own for n in operands} & set(own)
        used |= {output} & set(own)
        require(used == {layer["result"]}, "a layer has several results")
        computed = _reached(reads, {one["result"] for one in layers[: number + 1]})
    _check_output_reads(reads, output, layers, seen)
    check_kinds(layers, steps)


def _reached(reads: Mapping[str, set[str]], start: set[str]) -> set[str]:
    """The nodes that are computed from some nodes, and these."""
    found = set(start)
    for node, operands in reads.items():  # in the order of the steps
        if not found.isdisjoint(operands):
            found.add(node)
    return found


def _check_output_reads(
    reads: Mapping[str, set[str]], output: str, layers: Sequence[Mapping[str, Any]], inside: set[str]
) -> None:
    queue, seen, read = [output], set(), set()
    while queue:
        node = queue.pop()
        if node in inside:
            read.add(node)
        elif node not in seen:
            seen.add(node)
            queue += reads[node]
    require(read == {layers[-1]["result"]}, "the output reads another layer than the last")
