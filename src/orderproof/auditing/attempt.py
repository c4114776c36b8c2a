"""A graph walked for one law, and the proof read off the walk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from torch.fx import Node

from orderproof.auditing.entries import source_of
from orderproof.auditing.examine import Examination
from orderproof.laws import Axis, Law
from orderproof.prover.capture import Captured, module_path
from orderproof.prover.certificate import fingerprint, graph_steps
from orderproof.prover.constants import Constants
from orderproof.prover.interpret import Walk, interpret
from orderproof.record import Proof, Scope, Step

Weights = Literal["all", "these"]
REALS = "over the real numbers, for finite activations, at the exported shape"


@dataclass
class Attempt:
    """A graph walked for one law."""

    law: Law
    captured: Captured
    constants: Constants
    walk: Walk


def attempt(
    exam: Examination, law: Law, captured: Captured, *, weights: Weights = "all", repairing: bool = False
) -> Attempt:
    """Walk a graph for a law."""
    constants = Constants(
        captured.graph,
        captured.state,
        captured.values,
        parameters=captured.parameters,
        trust_parameters=weights == "these",
    )
    facts = {
        n: law.input_fact(tuple(int(s) for s in n.meta["val"].shape), axis)
        for n, axis in starts_of(exam, captured).items()
    }
    return Attempt(law, captured, constants, interpret(captured.graph, constants, facts, repairing=repairing))


def starts_of(exam: Examination, captured: Captured) -> dict[Node, Axis]:
    """The nodes a walk of this graph starts from (it may be a rewritten one), and the token axis of each."""
    if captured.start is not None:
        return {captured.start: 1}
    return dict(zip(captured.inputs, exam.subject.token_axes, strict=True))


def scope(exam: Examination, walk: Walk, weights: Weights, *, every: bool = False) -> Scope:
    """What a proof covers; `every`: every length, not only the one it was made at."""
    assumptions = [REALS.replace("at the exported shape", "at every length") if every else REALS, *walk.assumptions]
    if exam.numbers is not exam:
        assumptions.append("the recorded branch is the one that runs: checked on a tiny twin, not at this size")
    return Scope(
        length=exam.tokens,
        lengths="every" if every else "this",
        weights=weights,
        consulted=tuple(sorted(walk.consulted)),
        assumptions=tuple(assumptions),
    )


def proof_of(done: Attempt, output: str) -> Proof:
    """The steps the output rests on."""
    needed = ancestors(done.captured.outputs[output])
    lines, kinds = [], set()
    for node in done.captured.graph.nodes:
        lemma = done.walk.lemmas.get(node, "")
        if node not in needed or node.op != "call_function" or lemma in ("", "same_in_both_runs", "part_of_a_tuple"):
            continue
        fact = done.walk.facts[node]
        kinds.add(done.walk.same.get(node, node))
        text = "; ".join(f.describe() for f in fact) if isinstance(fact, tuple) else fact.describe()
        lines.append(
            Step(
                node=node.name,
                operator=str(node.target),
                lemma=lemma,
                fact=text,
                module=module_path(node),
                source=source_of(node)[0],
            )
        )
    counts = Counter(line.lemma for line in lines)
    return Proof(
        steps=len(lines), distinct=len(kinds), lemmas=dict(counts.most_common()), lines=tuple(lines),
        fingerprint=fingerprint(graph_steps(done.captured, needed)),
    )  # fmt: skip


def ancestors(node: Node) -> set[Node]:
    """A node and everything it is computed from."""
    found, queue = {node}, [node]
    while queue:
        for n in queue.pop().all_input_nodes:
            if n not in found:
                found.add(n)
                queue.append(n)
    return found
