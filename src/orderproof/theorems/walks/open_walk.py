"""Derive where two runs of an open graph agree, node by node."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch.fx import Node

from orderproof.logic.ordering import MAX_FACT_NODES
from orderproof.recording.loop_operators import LOOP_STACK, LOOP_STATE
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.facts.stored_constants import constant_fact
from orderproof.theorems.walks.common_numbers import without_common_numbers
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.extreme_places import note_place, note_running_place
from orderproof.theorems.walks.largest_scores import note_largest, note_part
from orderproof.theorems.walks.loops import Loop, loop_facts, stacked_fact
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operator_rules import find_open_rule
from orderproof.theorems.walks.sums_of_zeros import note_moved_sum
from orderproof.theorems.walks.values_of_a_run import with_values_of_a_run


@dataclass(frozen=True)
class OpenWalk:
    """The facts of an open graph, and why nodes have none."""

    facts: dict[Node, OpenFacts]
    failures: dict[Node, str]


def walk_open(graph: OpenGraph, inputs: Mapping[Node, OpenFact], context: Context) -> OpenWalk:
    """The facts about the nodes of a graph, given those about its inputs. A node without a rule has none."""
    return derive(graph, graph.graph.nodes, inputs, context)


def derive(graph: OpenGraph, nodes: Iterable[Node], known: Mapping[Node, OpenFacts], context: Context) -> OpenWalk:
    """The facts about some nodes in graph order, given those about others."""
    facts: dict[Node, OpenFacts] = dict(known)
    failures: dict[Node, str] = {}
    in_loops: set[Node] = set()
    for node in nodes:
        if node in in_loops:
            continue
        if node.op == "placeholder" and node not in facts:
            facts[node] = constant_fact(graph, node)
        if node.target is LOOP_STATE and node not in facts:
            loop = Loop.at(graph, node)
            in_loops |= set(loop.nodes)
            try:
                facts |= loop_facts(graph, loop, facts, context, derive)
            except NotCovered as error:
                failures[loop.end] = str(error)
            continue
        if node.op != "call_function" or any(operand not in facts for operand in node.all_input_nodes):
            continue
        try:
            facts[node] = _bounded(_fact(graph, node, facts, context))
        except NotCovered as error:
            failures[node] = str(error)
    return OpenWalk(facts, failures)


def _fact(graph: OpenGraph, node: Node, facts: dict[Node, OpenFacts], context: Context) -> OpenFacts:
    if node.target is operator.getitem:
        whole, place = facts[node.args[0]], node.args[1]  # type: ignore[index]
        if not isinstance(whole, tuple):
            raise NotCovered("a part of one tensor")
        whole_call = OpenOperation(node.args[0], facts, graph.shapes[node.args[0]], context)  # type: ignore[arg-type, index]
        note_part(whole_call, node, place)  # type: ignore[arg-type]
        note_running_place(whole_call, node, place)  # type: ignore[arg-type]
        return whole[place]  # type: ignore[index]
    if node.target is LOOP_STACK:
        return stacked_fact(node, facts)
    rule = find_open_rule(node.target)
    if rule is None:
        raise NotCovered(f"{node.target} has no rule")
    call = OpenOperation(node, facts, graph.shapes[node], context)
    note_place(call)
    result = without_common_numbers(call, rule, call.checked(rule(call)))
    note_largest(call)
    note_moved_sum(call, rule)
    return with_values_of_a_run(call, rule, call.finished(result)) if isinstance(result, OpenFact) else result


def _bounded(facts: OpenFacts) -> OpenFacts:
    """The facts, if a certificate can state them, which writes each formula out. Raises `NotCovered`."""
    for fact in facts if isinstance(facts, tuple) else (facts,):
        if any(part.size > MAX_FACT_NODES for part in fact.parts):
            raise NotCovered(f"what is known of its elements is a formula of more than {MAX_FACT_NODES:,} parts")
    return facts
