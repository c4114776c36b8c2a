"""Every mutant of the prover is noticed by a sample of its operator or by a program that it proves wrongly."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np
import pytest

from orderproof import laws
from orderproof.auditing.record.context import AuditContext
from orderproof.diagnosis.rule import rules
from tests.diagnosis.corpus.attack import finding_of, name_of_attack
from tests.diagnosis.corpus.attacks import ATTACKS
from tests.diagnosis.corpus.case import build
from tests.diagnosis.corpus.false_proofs import FALSE_PROOFS
from tests.diagnosis.corpus.hidden_leaks import PASSED_FOR_ORDINARY
from tests.diagnosis.corpus.operators.samples import SAMPLES
from tests.diagnosis.corpus.proved_by_mutants import PROGRAMS
from tests.diagnosis.corpus.repeated_steps import DIFFERENT, shared
from tests.diagnosis.corpus.wrong_facts import WRONG_FACTS
from tests.diagnosis.mutants.engine import MODULES, NAMES, ROLES, Mutant, change, mutated, tree_of
from tests.diagnosis.rule_tests import defined_by_rule_tests
from tests.diagnosis.sampling.contradictions import contradictions
from tests.diagnosis.sampling.operands import Sample
from tests.diagnosis.sampling.trials import runs_of, trials
from tests.diagnosis.walking import Program, examine, shortfall, violations, walk

Change = tuple[FunctionType, CodeType]
TRIALS = 48  # of each sample, a sixth of them first
BROKEN = {name_of_attack(attack): attack for attack in ATTACKS}
FILES = [p.stem for p in sorted(Path(__file__).parent.glob("*.py")) if not p.stem.startswith("test_")]
MUTANTS: list[Mutant] = [
    mutant
    for file in FILES
    for mutant in getattr(importlib.import_module(f"tests.diagnosis.mutants.{file}"), "MUTANTS", [])
]
MUTANTS += defined_by_rule_tests("MUTANTS")


def denied(sample: Sample, count: int) -> list[set[str]]:
    """For each trial, the prover's statements that runs contradict; a rule that fails states nothing."""
    found: list[set[str]] = []
    for tried, rng in trials(sample, count, SAMPLES.index(sample)):
        with np.errstate(all="ignore"):
            found.append({x for x in contradictions(tried, runs_of(tried, rng)) if not x.startswith("internal")})
    return found


def caught_by_sample(sample: Sample, changed: Change) -> bool:
    """True if runs contradict the mutant on a sample and do not contradict the prover itself."""
    for count in (TRIALS // 6, TRIALS):
        with mutated(changed):
            found = denied(sample, count)
        if any(found) and any(mutant - own for mutant, own in zip(found, denied(sample, count), strict=True)):
            return True
    return False


@cache
def examined(name: str) -> tuple[str, AuditContext]:
    """A program's law and examination, which no mutant changes."""
    for case in [*FALSE_PROOFS, *WRONG_FACTS]:
        if f"{case.name}-{case.law}" == name:
            return case.law, examine(build(case))
    if name in PASSED_FOR_ORDINARY:
        return PASSED_FOR_ORDINARY[name].law, examine(build(PASSED_FOR_ORDINARY[name]))
    law, function = PROGRAMS[name]
    return law, examine(Program(function))


def caught_by_program(name: str, changed: Change) -> bool:
    """True if the mutant proves a program that breaks the law, or two runs contradict one of its facts."""
    if name in DIFFERENT:
        with mutated(changed):
            return shared(name) != set()
    if name in BROKEN:
        with mutated(changed):
            found = finding_of(BROKEN[name], BROKEN[name].broken)
        return found.verdict == "proved" or "error in the prover" in found.reason
    law, context = examined(name)
    with mutated(changed):
        done = walk(context, laws.find_proved_law(law))
        return shortfall(context, done) is None or any(True for _ in violations(context, done))


def cases(*, slow: bool) -> list[object]:
    marks = pytest.mark.slow if slow else ()
    return [pytest.param(m, id=f"{m.module}-{m.name}", marks=() if m.quick else marks) for m in MUTANTS]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mutant", cases(slow=True))
def test_mutant_is_caught(mutant: Mutant) -> None:
    list(rules())  # loaded before the first edit
    changed = change(mutant)
    samples = [s for operator in mutant.operators for s in SAMPLES if s.operator == operator]
    assert any(caught_by_sample(s, changed) for s in samples) or (
        mutant.program != "" and caught_by_program(mutant.program, changed)
    )


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program_that_sees_a_mutant_is_not_proved_without_it(name: str) -> None:
    law, context = examined(name)
    assert shortfall(context, walk(context, laws.find_proved_law(law))) is not None


@pytest.mark.parametrize("mutant", cases(slow=False))
def test_mutant_changes_one_place(mutant: Mutant) -> None:
    function, code = change(mutant)
    assert code.co_name == function.__code__.co_name


def test_names_that_replacements_use_are_names_of_the_prover() -> None:
    found = {
        (role, getattr(node, part))
        for key in {*MODULES, *(mutant.module for mutant in MUTANTS)}
        for node in ast.walk(tree_of(key))
        for (kind, part), role in ROLES.items()
        if isinstance(node, kind)
    }
    stale = [name for (role, _), name in NAMES.items() if (role, name) not in found]
    assert stale == [], "renamed: change NAMES in engine.py"
