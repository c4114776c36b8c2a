"""Every mutant of the open rules, the moved rules and the logic is noticed by a program or a test."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import orderproof.theorems.operators
from orderproof.theorems.walks.operator_rules import load_rooms
from tests.diagnosis.mutants.engine import Mutant, change
from tests.theorems.mutants.killers import is_noticed
from tests.theorems.mutants.survivors import SURVIVORS
from tests.theorems.operator_programs import defined_by_operators

FOLDERS = {
    "tests.theorems.mutants": Path(__file__).parent,
    "tests.logic.mutants": Path(__file__).parents[2] / "logic/mutants",
}
FILES = [
    f"{package}.{path.stem}"
    for package, folder in FOLDERS.items()
    for path in sorted(folder.glob("*.py"))
    if not path.stem.startswith("test_")
]
MUTANTS: list[Mutant] = [mutant for file in FILES for mutant in getattr(importlib.import_module(file), "MUTANTS", [])]
MUTANTS += defined_by_operators("MUTANTS")
LEAST = 4  # mutants of each family of operators


def cases() -> list[object]:
    """Each mutant; seven of eight only with `make soak`."""
    marks = [() if place % 8 == 0 else pytest.mark.slow for place in range(len(MUTANTS))]
    return [pytest.param(m, id=f"{m.module}-{m.name}", marks=each) for m, each in zip(MUTANTS, marks, strict=True)]


@pytest.mark.parametrize("mutant", cases())
def test_mutant_is_noticed(mutant: Mutant) -> None:
    load_rooms()
    assert is_noticed(mutant.program, change(mutant))


@pytest.mark.parametrize(
    "mutant", [*MUTANTS, *(mutant for mutant, _ in SURVIVORS)], ids=lambda m: f"{m.module}-{m.name}"
)
def test_mutant_changes_one_place(mutant: Mutant) -> None:
    function, code = change(mutant)
    assert code.co_name == function.__code__.co_name


def test_each_family_has_mutants() -> None:
    families = [p.name for path in orderproof.theorems.operators.__path__ for p in Path(path).iterdir() if p.is_dir()]
    counts = {
        family: sum(m.module.startswith(f"theorems.operators.{family}.") for m in MUTANTS)
        for family in families
        if not family.startswith("_")
    }
    assert {family: count for family, count in counts.items() if count < LEAST} == {}
