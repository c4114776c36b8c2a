"""Certificates of theorems about small programs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from orderproof.auditing.decide.theorems import EVERY_DEPTH_ASSUMPTION
from orderproof.auditing.record.length_ranges import length_bounds
from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.number_limits import masks_from
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.branches import walk_branch
from orderproof.theorems.certificates.agreement import recording_record
from orderproof.theorems.certificates.notation import formula_data
from orderproof.theorems.output_proof import OutputProof
from orderproof.theorems.statement import MASK, TOKEN_INPUT
from orderproof_recheck.assumptions import REAL_NUMBERS
from orderproof_recheck.certificate_file import KIND, VERSION
from orderproof_recheck.theorem import check_theorem
from tests.theorems import programs
from tests.theorems.large_numbers import RECHECKED
from tests.theorems.loops import IN_CHUNKS, LOOPS
from tests.theorems.low_numbers import LOW
from tests.theorems.operator_programs import defined_by_operators
from tests.theorems.programs import WIDTH, Case, Program
from tests.theorems.refuted import REFUTED
from tests.theorems.shared_heads import SHARED_HEADS
from tests.theorems.sparse_attention import SPARSE

Certificate = dict[str, Any]
CASES = {
    case.name: case
    for case in [
        *programs.CASES,
        *REFUTED,
        *SPARSE,
        *RECHECKED,
        *LOW,
        *SHARED_HEADS,
        *LOOPS,
        *IN_CHUNKS,
        *defined_by_operators("PROGRAMS"),
    ]
}
LAWS = ("causal", "padding", "batch")


class LyingSolver(Solver):
    """Says that everything follows, as a defect of Z3 could."""

    def implies(self, premises: Any, conclusion: Any) -> bool:
        """True."""
        return True


def recorded(case: Case) -> tuple[list[OpenGraph], tuple[str, ...]]:
    """The recordings of a program, and the roles of its inputs."""
    torch.manual_seed(0)
    return recorded_module(Program(case.function), masked=case.masked)


def recorded_module(module: nn.Module, *, masked: bool = False) -> tuple[list[OpenGraph], tuple[str, ...]]:
    """The recordings of a module, and the roles of its inputs."""
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    if masked:
        inputs.append(OpenInput("mask", ("batch", "tokens"), torch.int64, fixed=True))
    return record_open(module.eval(), inputs, {"batch": 3, "tokens": 13}), (TOKEN_INPUT, *[MASK] * masked)


def unchecked(graphs: Sequence[OpenGraph], roles: tuple[str, ...], law: str, solver: Solver) -> Certificate | None:
    """The certificate of a theorem as the prover writes it, before the recheck; None if nothing is proved."""
    statement = find_law(law).open_statement(frozenset(roles[1:]))
    if statement is None:
        return None
    results = prove_agreement(graphs, roles, statement, solver)
    (output,) = results
    if not results[output].proved:
        return None
    size = results[output].least_mask
    with nullcontext() if size is None else masks_from(size):
        branches = [walk_branch(graph, roles, statement, solver) for graph in graphs]
        recordings = [recording_record(branch, roles, output) for branch in branches]
    least, greatest, conditions = length_bounds([c for graph in graphs for c in graph.conditions], Solver())
    return {
        "certificate": VERSION,
        "kind": KIND,
        "law": law,
        "code": find_law(law).code,
        "output": output,
        "subject": "a small program",
        "claim": {},
        "assumptions": assumptions(results[output], graphs),
        "calls": [
            {
                "shared": list(roles[1:]),
                "ranges": [
                    {
                        "least_length": least,
                        "greatest_length": greatest,
                        "conditions": [formula_data(c) for c in conditions],
                        "recordings": recordings,
                        **({} if size is None else {"least_mask": size}),
                    }
                ],
            }
        ],
        "digest": "",
    }


def assumptions(result: OutputProof, graphs: Sequence[OpenGraph]) -> list[str]:
    """The sentences that a certificate of this proof states."""
    of_recordings = [text for graph in graphs for text in graph.assumptions]
    of_depth = [EVERY_DEPTH_ASSUMPTION] if result.every_depth else []
    return [REAL_NUMBERS, *dict.fromkeys([*of_recordings, *result.assumptions, *of_depth])]


_made: dict[tuple[str, str], Certificate | None] = {}


def example(name: str, law: str) -> Certificate | None:
    """The accepted certificate of a program, made once; None if the law is not proved."""
    if (name, law) not in _made:
        made = unchecked(*recorded(CASES[name]), law, Solver())
        if made is not None:
            check_theorem(made, fill=True)
        _made[name, law] = made
    return copy.deepcopy(_made[name, law])
