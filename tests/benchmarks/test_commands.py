"""The benchmark of the commands runs and prints rows that can be read; no time is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import commands
from orderproof.cli.application import app


def test_it_prints_and_writes_a_row_for_each_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "ANSWERS", ("--help",))
    monkeypatch.setattr(commands, "REFUSALS", ("audit ./missing.py:f",))
    page = tmp_path / "page.md"
    assert commands.main(["--repeats", "1", "--markdown", str(page)]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line.startswith("orderproof ")]
    assert [row[:2] for row in rows] == [["orderproof --help", "0"], ["orderproof audit ./missing.py:f", "2"]]
    assert all(float(seconds) > 0 for *_, seconds in rows)
    assert f"| `orderproof --help` | 0 | {rows[0][2]} |" in page.read_text(encoding="utf-8")


def test_a_command_that_does_not_end_as_documented_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "processor_seconds", lambda arguments: (0, 0.1))
    with pytest.raises(RuntimeError, match="expected `orderproof audit missing_file` to exit with 2; got 0"):
        commands.measure("audit missing_file", 1)


def test_the_slowest_command_is_compared_with_the_limit() -> None:
    rows = [("orderproof --help", "0", "0.30"), ("orderproof list laws", "0", "1.20")]
    assert commands.slowest(rows) == "slowest: 1.20 s (orderproof list laws), ABOVE the limit of 1.0 s"
    assert commands.slowest(rows[:1]) == "slowest: 0.30 s (orderproof --help), within the limit of 1.0 s"


def test_every_command_has_its_help_measured() -> None:
    assert {str(command.name) for command in app.registered_commands} | {""} == set(commands.COMMANDS)
