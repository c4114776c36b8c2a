"""The walk of a graph for one law: the facts that hold at each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch.fx import Node

from orderproof.auditing.record.recorded_call import RecordedCall
from orderproof.diagnosis.analysis import Analysis, analyze
from orderproof.diagnosis.domain.constants import Constants, draws_random_numbers
from orderproof.diagnosis.domain.fact import Fact
from orderproof.laws import ProvedLaw, TokenAxis
from orderproof.recording.captured_graph import CapturedGraph

Weights = Literal["all", "these"]


@dataclass
class LawWalk:
    """The facts of a graph for one law, and how they were derived."""

    law: ProvedLaw
    captured: CapturedGraph
    constants: Constants
    walk: Analysis
    weights: Weights

    @property
    def covered_weights(self) -> Weights:
        """The weights for which a proof holds: these if it uses the values of a parameter."""
        return "these" if any(map(self.constants.is_parameter, self.walk.used_names)) else "all"


def walk_graph(
    call: RecordedCall, law: ProvedLaw, captured: CapturedGraph, *, weights: Weights = "all", repairing: bool = False
) -> LawWalk:
    """Derive the facts of a graph for a law; `repairing` goes on after a break as if the law held there."""
    constants = Constants(
        captured.graph,
        captured.state,
        captured.values,
        parameters=captured.parameters,
        trust_parameters=weights == "these",
    )
    facts = input_facts(call, law, captured)
    analysis = analyze(captured.graph, constants, facts, continue_after_break=repairing)
    return LawWalk(law, captured, constants, analysis, weights)


def start_axes(call: RecordedCall, captured: CapturedGraph) -> dict[Node, TokenAxis]:
    """The inputs, and the nodes that draw random numbers: these have no token axis, and both runs draw the same."""
    axes = call.input_axes_of(captured)
    return (
        axes if captured.start is not None else axes | dict.fromkeys(filter(draws_random_numbers, captured.graph.nodes))
    )


def input_facts(call: RecordedCall, law: ProvedLaw, captured: CapturedGraph) -> dict[Node, Fact]:
    """The facts of a law with which a walk starts."""
    return {
        node: law.input_fact(tuple(int(size) for size in node.meta["val"].shape), axis)
        for node, axis in start_axes(call, captured).items()
    }
