"""Equivariance is proved of small programs exactly where every permutation that is tried agrees with it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof.errors import CaptureError
from orderproof.logic.rewriting import evaluate
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.equivariance import prove_equivariance
from orderproof.theorems.operators.contraction.products import LABELS
from orderproof.theorems.operators.movement.rearrangement import PLANS
from orderproof.theorems.statement import MASK, POSITIONS, TOKEN_INPUT
from orderproof.theorems.walks.operator_rules import TABLE, find_moved_rule, load_rooms
from tests.pairs import one_in
from tests.theorems import programs
from tests.theorems.moved_programs import CASES, Case
from tests.theorems.operator_programs import defined_by_operators
from tests.theorems.programs import WIDTH, Program
from tests.theorems.random_programs import random_program
from tests.theorems.refuted import REFUTED
from tests.theorems.seen_by_mutants import SEEN_BY_MUTANTS_WHEN_MOVED
from tests.theorems.sparse_attention import SPARSE

LENGTHS = (2, 3, 6, 11, 17)
EXAMPLE = 13


def _module(function: object) -> Program:
    torch.manual_seed(0)
    return Program(function).double().eval()  # type: ignore[arg-type]


def _dtype(module: nn.Module) -> torch.dtype:
    return next(module.parameters()).dtype


def _record(module: nn.Module, second: str) -> list[OpenGraph]:
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), _dtype(module))]
    if second:
        inputs.append(OpenInput(second, ("batch", "tokens"), torch.int64, fixed=True))
    return record_open(module, inputs, {"batch": 3, "tokens": EXAMPLE})


def _is_proved(graphs: list[OpenGraph], second: str) -> bool:
    results = prove_equivariance(graphs, (TOKEN_INPUT, *[second] * bool(second)), Solver())
    return bool(results) and all(r.proved for r in results.values())


def _violates(module: nn.Module, tokens: int, second: str, seed: int) -> bool:
    """True if one permutation of random tokens contradicts equivariance."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, tokens, WIDTH, generator=generator, dtype=_dtype(module))
    order = torch.randperm(tokens, generator=generator)
    extra = []
    if second == POSITIONS:
        extra = [torch.stack([torch.randperm(tokens, generator=generator) for _ in range(3)])]
    elif second == MASK:
        extra = [torch.randint(0, 2, (3, tokens), generator=generator)]
        extra[0][:, 0] = 1
    with torch.no_grad():
        first = module(x, *extra)
        moved = module(x[:, order], *(one[:, order] for one in extra))
    expected: Tensor = first[:, order] if first.dim() > 2 and first.shape[1] == tokens else first
    tolerance = 1e-7 if _dtype(module) is torch.float64 else 1e-4
    return not torch.allclose(moved, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(
    "case",
    one_in(4, [*CASES, *SEEN_BY_MUTANTS_WHEN_MOVED, *defined_by_operators("MOVED_PROGRAMS")]),
    ids=lambda c: c.name,
)
def test_equivariance_is_proved_exactly_where_it_holds(case: Case) -> None:
    module = _module(case.function)
    assert _is_proved(_record(module, POSITIONS), POSITIONS) == case.equivariant
    violated = any(_violates(module, n, POSITIONS, seed) for n in LENGTHS for seed in range(4))
    assert violated == (not case.equivariant)


def test_attention_of_other_ranks_is_no_error_of_the_prover() -> None:
    def function(m: Program, x: Tensor) -> Tensor:
        return x + torch.nn.functional.scaled_dot_product_attention(m.table.weight[:1], x, x).mean(1, keepdim=True)

    results = prove_equivariance(_record(_module(function), ""), (TOKEN_INPUT,), Solver())
    assert [one.proved for one in results.values()] == [False]
    assert "another number of dimensions" in next(iter(results.values())).reason


def test_every_rule_is_used_by_a_program_that_is_proved() -> None:
    targets = {
        node.target
        for case in [*CASES, *defined_by_operators("MOVED_PROGRAMS")]
        if case.equivariant
        for graph in _record(_module(case.function), POSITIONS)
        for node in graph.graph.nodes
        if node.op == "call_function"
    }
    used = {find_moved_rule(target) for target in targets}
    load_rooms()
    rules = {entry.moved_rule for entry in TABLE.values() if entry.moved_rule is not None}
    assert {rule.__name__ for rule in rules - used} == set()
    names = {str(target).split(".")[1] for target in targets if str(target).startswith("aten.")}
    for table in (LABELS, PLANS):
        unused = set(table.values()) - {table[name] for name in names & set(table)}
        assert {plan.__name__ for plan in unused} <= {"outer"}


@pytest.mark.parametrize("case", one_in(6, [*programs.CASES, *REFUTED, *SPARSE]), ids=lambda c: c.name)
def test_programs_of_other_laws_are_not_proved_wrongly(case: programs.Case) -> None:
    second = MASK if case.masked else ""
    module = _module(case.function).float()
    try:
        graphs = _record(module, second)
    except CaptureError:
        return
    if _is_proved(graphs, second):
        lengths = [n for n in LENGTHS if case.least <= n <= (case.greatest or n)]
        assert not any(_violates(module, n, second, seed) for n in lengths for seed in range(4))


def check(seeds: range) -> tuple[int, int]:
    """Prove and run random programs: how many were proved, and how many permutations were compared."""
    proved, compared = 0, 0
    for seed in seeds:
        steps, function = random_program(seed)
        torch.manual_seed(seed)
        module = Program(function).double().eval()
        try:
            graphs = _record(module, MASK)
        except CaptureError:
            continue
        if not _is_proved(graphs, MASK):
            continue
        proved += 1
        for tokens in LENGTHS:
            sizes = {"batch": 3, "tokens": tokens}
            if all(not c.functions and evaluate(c, sizes, {}) for graph in graphs for c in graph.conditions):
                for trial in range(4):
                    assert not _violates(module, tokens, MASK, trial), f"program {seed}: {steps}"
                    compared += 1
    return proved, compared


def test_no_permutation_contradicts_a_theorem_about_random_programs() -> None:
    proved, compared = check(range(40, 60))
    assert proved >= 2
    assert compared >= 20


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_no_permutation_contradicts_a_theorem_about_many_random_programs(block: int) -> None:
    proved, _ = check(range(1000 + 200 * block, 1200 + 200 * block))
    assert proved > 0
