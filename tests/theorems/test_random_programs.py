"""No pair of runs contradicts what is proved of random programs for every length and every attention mask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from orderproof.errors import CaptureError
from orderproof.laws import find_law
from orderproof.logic.rewriting import evaluate
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.statement import MASK, TOKEN_INPUT
from tests.theorems.programs import WIDTH, Program
from tests.theorems.random_programs import random_program

LENGTHS = (2, 3, 5, 7, 8, 9, 13, 17, 33)
ROWS = 3
EXAMPLE = 19


def _proved(graphs: list[OpenGraph]) -> list[str]:
    solver, found = Solver(), []
    for law in ("causal", "padding", "batch"):
        statement = find_law(law).open_statement(frozenset({MASK}))
        assert statement is not None
        results = prove_agreement(graphs, (TOKEN_INPUT, MASK), statement, solver)
        if results and all(r.proved for r in results.values()):
            found.append(law)
    return found


def _covers(graphs: list[OpenGraph], tokens: int) -> bool:
    sizes = {"batch": ROWS, "tokens": tokens}
    return all(not c.functions and evaluate(c, sizes, {}) for graph in graphs for c in graph.conditions)


def _masks(tokens: int, generator: torch.Generator) -> Iterator[Tensor]:
    places = torch.arange(tokens)
    yield (places >= 0).expand(ROWS, -1)
    yield (places < tokens - 1).expand(ROWS, -1)
    yield (places == tokens // 2).expand(ROWS, -1)
    yield torch.rand(ROWS, tokens, generator=generator) < 0.6


def contradictions(module: Program, laws: list[str], tokens: int) -> Iterator[str]:
    """The laws that some pair of runs with this number of tokens contradicts, and an empty text for other pairs."""
    generator = torch.Generator().manual_seed(tokens)
    for trial, real in enumerate(_masks(tokens, generator)):
        x = torch.randn(ROWS, tokens, WIDTH, generator=generator, dtype=torch.float64)
        before = (torch.arange(tokens) < int(torch.randint(1, tokens, (), generator=generator))).expand(ROWS, -1)
        row = (torch.arange(ROWS) == trial % ROWS)[:, None].expand(-1, tokens)
        compared = {"causal": (before, before & real), "padding": (real, real), "batch": (row, row)}
        first = module(x, real.long())
        for law in laws:
            kept, shown = compared[law]
            other = torch.randn(x.shape, generator=generator, dtype=torch.float64) * 3
            second = module(torch.where(kept[..., None], x, other), real.long())
            close = torch.isclose(first, second, rtol=1e-6, atol=1e-6, equal_nan=True)
            yield "" if bool(close[shown].all()) else law


def check(seeds: range) -> tuple[int, int, int]:
    """Prove and run random programs: how many were recorded, how many laws proved, how many pairs of runs compared."""
    recorded, proofs, pairs = 0, 0, 0
    inputs = [
        OpenInput("x", ("batch", "tokens", WIDTH), torch.float64),
        OpenInput("mask", ("batch", "tokens"), torch.int64, fixed=True),
    ]
    for seed in seeds:
        steps, function = random_program(seed)
        torch.manual_seed(seed)
        module = Program(function).double().eval()
        try:
            graphs = record_open(module, inputs, {"batch": ROWS, "tokens": EXAMPLE})
        except CaptureError:
            continue
        laws = _proved(graphs)
        recorded, proofs = recorded + 1, proofs + len(laws)
        with torch.no_grad():
            for tokens in (n for n in LENGTHS if laws and _covers(graphs, n)):
                for wrong in contradictions(module, laws, tokens):
                    pairs += 1
                    assert not wrong, f"program {seed} ({steps}): {wrong} is proved, and false with {tokens} tokens"
    return recorded, proofs, pairs


def test_no_run_contradicts_a_theorem_about_random_programs() -> None:
    recorded, proofs, pairs = check(range(24))
    assert recorded >= 18
    assert proofs >= 12
    assert pairs >= 300


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_no_run_contradicts_a_theorem_about_many_random_programs(block: int) -> None:
    _, proofs, _ = check(range(1000 + 100 * block, 1100 + 100 * block))
    assert proofs > 0
