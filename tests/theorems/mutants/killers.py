"""What notices a mutant of the open rules, the moved rules or the logic: a program, or a test.

A mutant names one of

    causal attention            a case of the open programs: other laws are proved of it than those that it fulfils
    moved: reversed             a case of the programs of permuted tokens: it is proved, or not, against its table
    tests.logic.test_terms:test_name    a test, which fails

Each trial runs in a forked process: expressions and results are kept in tables, and those of a mutant must not stay.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import pytest
import torch

from orderproof.laws import find_law
from orderproof.logic import solver, terms
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.equivariance import prove_equivariance
from orderproof.theorems.facts import open_fact
from orderproof.theorems.statement import MASK, POSITIONS, TOKEN_INPUT
from orderproof.theorems.walks import context
from tests.diagnosis.mutants.engine import mutated
from tests.theorems.moved_programs import CASES as MOVED_CASES
from tests.theorems.operator_programs import defined_by_operators
from tests.theorems.programs import WIDTH, Program
from tests.theorems.seen_by_mutants import SEEN_BY_MUTANTS_WHEN_MOVED
from tests.theorems.test_programs import CASES as OPEN_CASES
from tests.theorems.test_programs import LAWS

LOGIC = "tests.logic."
MOVED = "moved: "
OPEN_PROGRAMS = {case.name: case for case in OPEN_CASES}
MOVED_PROGRAMS = {
    case.name: case for case in [*MOVED_CASES, *SEEN_BY_MUTANTS_WHEN_MOVED, *defined_by_operators("MOVED_PROGRAMS")]
}
NOTICED, PASSED = 10, 20  # exit codes of a trial
Change = tuple[FunctionType, CodeType]


@cache
def recorded(name: str) -> tuple[list[OpenGraph], tuple[str, ...]]:
    """The recordings of a program, which no mutant changes, and the roles of its inputs."""
    moved = name.startswith(MOVED)
    case: Any = MOVED_PROGRAMS[name.removeprefix(MOVED)] if moved else OPEN_PROGRAMS[name]
    second = POSITIONS if moved else MASK if case.masked else ""
    torch.manual_seed(0)
    module = Program(case.function).eval()
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    if second:
        inputs.append(OpenInput("second", ("batch", "tokens"), torch.int64, fixed=True))
    return record_open(module, inputs, {"batch": 3, "tokens": 13}), (TOKEN_INPUT, *[second] * bool(second))


def is_proved_as_it_should_be(name: str) -> bool:
    """True if exactly the laws that a program fulfils are proved of it."""
    graphs, roles = recorded(name)
    if name.startswith(MOVED):
        results = prove_equivariance(graphs, roles, Solver())
        return all(r.proved for r in results.values()) == MOVED_PROGRAMS[name.removeprefix(MOVED)].equivariant
    found, prover = set(), Solver()
    statements = {law: find_law(law).open_statement(frozenset(roles[1:])) for law in LAWS}
    for law, statement in statements.items():
        if statement is not None and all(r.proved for r in prove_agreement(graphs, roles, statement, prover).values()):
            found.add(law)
    return found == {law for law in OPEN_PROGRAMS[name].laws if statements[law] is not None}


def passes(test: str) -> bool:
    """True if a test passes for each of its parameters."""
    module, _, name = test.partition(":")
    function = getattr(importlib.import_module(module), name)
    try:
        for arguments in _arguments(function):
            function(**arguments)
    except Exception:  # noqa: BLE001: a test also fails if it raises
        return False
    return True


def _arguments(function: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """The arguments of each call of a parametrized test."""
    choices: list[list[dict[str, Any]]] = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = [n.strip() for n in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            rows = [getattr(row, "values", row) if not isinstance(row, dict) else row for row in mark.args[1]]
            choices.append([dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in rows])
    patched = {"monkeypatch": pytest.MonkeyPatch()} if "monkeypatch" in inspect.signature(function).parameters else {}
    for chosen in itertools.product(*choices):
        yield {**patched, **{name: value for one in chosen for name, value in one.items()}}


def _forget_expressions() -> None:
    kept = {key: made for key, made in terms._interned.items() if isinstance(made, terms.Constant)}
    terms._interned.clear()
    terms._interned.update(kept)


def is_noticed(program: str, changed: Change) -> bool:
    """True if a program or a test notices a change."""
    check = passes if ":" in program and not program.startswith(MOVED) else is_proved_as_it_should_be
    if check is is_proved_as_it_should_be:
        recorded(program)
    return _in_a_fork(lambda: not check(program), changed, fresh=program if program.startswith(LOGIC) else "")


def _in_a_fork(notices: Callable[[], bool], changed: Change, fresh: str = "") -> bool:
    """True if a change is noticed; a test `fresh` makes its expressions anew, which others may have made before."""
    child = os.fork()
    if child == 0:
        code = PASSED
        try:
            for table in (open_fact._substitution, context._range, solver._product_bounds):
                table.cache_clear()
            terms._negations.clear()
            if fresh:
                _forget_expressions()
                assert passes(fresh)
                _forget_expressions()
            with mutated(changed):
                code = NOTICED if notices() else PASSED
        except BaseException:  # noqa: BLE001: a mutant that crashes the prover is no test of it
            code = 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (NOTICED, PASSED), f"the mutant crashes: {inspect.getsourcefile(changed[0])}"
    return code == NOTICED
