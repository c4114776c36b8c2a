"""Processor seconds and peak memory of whole commands, against their limits.

    python benchmarks/audit_cost.py                  every command, three times each
    python benchmarks/audit_cost.py --only audit     only commands with this word
    python benchmarks/audit_cost.py --repeats 1

seconds   processor time of the command and all processes that it starts, imports included, on one thread: the least
          of the repeats, because other work on the machine only adds to it; the first run may compile modules
memory    the largest sum, at one time, of the memory of all its processes, where a page that several processes share
          counts once (Pss in /proc, so Linux only): the largest of the repeats, read every 20 ms
largest   the most memory of one process, with shared pages
The exit code is 1 if a command exceeds a limit or fails.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SAMPLING_INTERVAL = 0.02  # [s]
# A 405-billion-parameter Llama, by its published sizes.
LARGEST = (
    "arch:llama?num_hidden_layers=126&hidden_size=16384&num_attention_heads=128&num_key_value_heads=8"
    "&intermediate_size=53248&vocab_size=128256"
)
HEADER = ("command", "seconds", "limit", "memory [MB]", "limit", "largest [MB]", "")


@dataclass(frozen=True)
class Command:
    """A command of the tool, and what it may cost."""

    name: str
    arguments: tuple[str, ...]
    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Cost:
    """What one run of a command cost."""

    seconds: float
    megabytes: float  # of all processes, at the worst time
    largest: float  # [MB] of one process
    exit_code: int


COMMANDS = (
    Command("audit of the bundled model", ("audit", "--quiet"), 15, 1200),
    Command("tiny Llama, causal", ("prove", "arch:llama", "--tiny", "--law", "causal", "--quiet"), 7, 600),
    Command("Llama with 405e9 parameters, causal", ("prove", LARGEST, "--law", "causal", "--quiet"), 25, 800),
)


def run(arguments: tuple[str, ...]) -> Cost:
    """Run the tool once with these arguments."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else every run compiles what no earlier one did
    command = [sys.executable, "-m", "orderproof", *arguments]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0.0
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        most = max(most, memory_at_one_time(process.pid))
        time.sleep(SAMPLING_INTERVAL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, most, usage.ru_maxrss * 1024 / 1e6, process.returncode)


def memory_at_one_time(pid: int) -> float:
    """The memory [MB] of a process and all that it started.

    They are stopped meanwhile: a page of a file that one of them reads after the memory of another was read would
    count for both.
    """
    processes = [pid]
    try:
        for process in processes:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(process, signal.SIGSTOP)
            processes += children(process)
        return sum(map(proportional_memory, processes))
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def children(pid: int) -> list[int]:
    """The processes that a process started; none if it has ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for t in threads for child in (t / "children").read_text(encoding="utf-8").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def proportional_memory(pid: int) -> float:
    """The memory of a process [MB]; a page that n processes share counts 1/n."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0.0
    return sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("Pss:"))


def row(command: Command, costs: list[Cost]) -> tuple[tuple[str, ...], bool]:
    """The cells of a command, and whether it kept its limits."""
    seconds, memory = min(c.seconds for c in costs), max(c.megabytes for c in costs)
    problems = [
        *["too slow"] * (seconds > command.seconds),
        *["too much memory"] * (memory > command.megabytes),
        *[f"exit code {c.exit_code}" for c in costs if c.exit_code],
    ]
    cells = (
        command.name, f"{seconds:.2f}", f"{command.seconds:g}", f"{memory:.0f}", f"{command.megabytes:g}",
        f"{max(c.largest for c in costs):.0f}", ", ".join(dict.fromkeys(problems)) or "ok",
    )  # fmt: skip
    return cells, not problems


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only commands whose name holds this text")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    print("\t".join(HEADER), flush=True)
    kept = True
    for command in COMMANDS:
        if given.only in command.name:
            cells, within = row(command, [run(command.arguments) for _ in range(given.repeats)])
            kept = kept and within
            print("\t".join(cells), flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
