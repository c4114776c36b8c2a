"""The benchmark of whole commands measures all processes of a command, and names a limit that is exceeded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.audit_cost import Command, Cost

from benchmarks import audit_cost


def test_a_command_costs_time_and_memory() -> None:
    cost = audit_cost.run(("--version",))
    assert cost.exit_code == 0
    assert cost.seconds > 0
    assert 1 < cost.megabytes <= cost.largest * 1.01


def test_the_memory_of_all_processes_is_read_while_they_stand_still() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = [process.pid, *audit_cost.children(process.pid)]
        sizes = [audit_cost.proportional_memory(pid) for pid in found]
        together = audit_cost.memory_at_one_time(process.pid)
        process.communicate(b"\n")  # they go on
    assert process.returncode == 0
    assert len(found) == 2
    assert min(sizes) > 1
    assert together == pytest.approx(sum(sizes), rel=0.05)
    assert audit_cost.memory_at_one_time(process.pid) == 0


def test_an_exceeded_limit_and_a_failed_command_are_named() -> None:
    command = Command("a", (), seconds=2, megabytes=100)
    cells, kept = audit_cost.row(command, [Cost(1, 90, 95, 0), Cost(3, 99, 100, 0)])
    assert (cells, kept) == (("a", "1.00", "2", "99", "100", "100", "ok"), True)
    cells, kept = audit_cost.row(command, [Cost(3, 101, 120, 2)])
    assert (cells[-1], kept) == ("too slow, too much memory, exit code 2", False)


def test_a_benchmark_without_commands_prints_the_header(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit_cost.main(["--only", "no such command"]) == 0
    assert capsys.readouterr().out == "\t".join(audit_cost.HEADER) + "\n"
