"""Every mutant of the recording's protections is noticed by the test that it names."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from orderproof.diagnosis.rule import rules
from orderproof.forked_process import ForkedProcess, can_fork
from tests.diagnosis.mutants.engine import Mutant, change, mutated
from tests.recording.mutants.protections import MUTANTS

TESTS = Path(__file__).parents[1]  # of recording
forks = pytest.mark.skipif(not can_fork(), reason="needs fork")


def fails_with(changed: tuple[FunctionType, CodeType], test: str, log: Path) -> bool:
    """True if a test fails where the changed code runs, in a process of its own."""

    def run() -> None:
        options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        with log.open("w", encoding="utf-8") as written, redirect_stdout(written), mutated(changed):
            code = pytest.main([*options, str(TESTS / test)])
        os._exit(int(code))

    code = os.waitstatus_to_exitcode(ForkedProcess(run).wait())
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), log.read_text(encoding="utf-8")
    return code == pytest.ExitCode.TESTS_FAILED


@forks
@pytest.mark.parametrize(
    "mutant", [pytest.param(m, id=m.name, marks=() if m.quick else pytest.mark.slow) for m in MUTANTS]
)
def test_mutant_is_caught(mutant: Mutant, tmp_path: Path) -> None:
    list(rules())  # loaded before the edit
    assert fails_with(change(mutant), mutant.program, tmp_path / "log")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_changes_one_place(mutant: Mutant) -> None:
    function, code = change(mutant)
    assert code.co_name == function.__code__.co_name
    assert (TESTS / mutant.program.partition("::")[0]).is_file()
