"""Programs whose facts grow exponentially with the number of writes: nothing is proved of them, and it is said why."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from orderproof.laws import find_law
from orderproof.logic.ordering import MAX_FACT_NODES
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.branches import walk_branch
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.statement import TOKEN_INPUT
from tests.theorems.programs import WIDTH, Program


def pairs(m: Program, x: Tensor) -> Tensor:
    """Token n-1-i becomes the sum of tokens i//2 and i, twice."""
    n = x.shape[1]
    out = x.clone()
    places = list(range(1, n // 2))  # a list is no loop of open length, in which one fact would serve all places
    for _ in range(2):
        for i in places:
            out[:, n - 1 - i] = out[:, i // 2] + out[:, i]
    return out


def last(m: Program, x: Tensor) -> Tensor:
    """The last token gets the first, then one in the middle."""
    n = x.shape[1]
    out = x.clone()
    for i in range(2):
        out[:, n - 1] += out[:, i * (n // 2)]
    return out


def _record(function: Callable[..., Tensor], tokens: int) -> list[OpenGraph]:
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    return record_open(Program(function).eval(), inputs, {"batch": 3, "tokens": tokens})


def test_what_is_known_of_a_tensor_is_bounded_and_the_reason_names_the_bound() -> None:
    graphs, solver = _record(pairs, 23), Solver()
    statement = find_law("causal").open_statement(frozenset())
    assert statement is not None
    output = prove_agreement(graphs, [TOKEN_INPUT], statement, solver)["output"]
    assert not output.proved
    assert output.reason == f"what is known of its elements is a formula of more than {MAX_FACT_NODES:,} parts"
    assert output.node is not None
    for graph in graphs:
        facts = walk_branch(graph, [TOKEN_INPUT], statement, solver).done.facts
        sizes = [part.size for fact in facts.values() if isinstance(fact, OpenFact) for part in fact.parts]
        assert 1000 < max(sizes) <= MAX_FACT_NODES


def test_few_writes_of_the_same_kind_are_proved() -> None:
    statement = find_law("causal").open_statement(frozenset())
    assert statement is not None
    assert prove_agreement(_record(last, 13), [TOKEN_INPUT], statement, Solver())["output"].proved
