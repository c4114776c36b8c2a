"""Processor time of the plain command for small modules, as a ratio to importing their libraries.

    python benchmarks/cases.py [--markdown FILE]

Each command runs in a process of its own on one thread, and is compared with a process that imports the file of the
module only. The seconds are those of user and system, with the start of Python and all child processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.cases.table import CASES, Case  # noqa: E402 - from the checkout

HEAD = "| case | exit | fails at | seconds | imports | ratio |\n| --- | --- | --- | --- | --- | --- |"


def processor_seconds(command: list[str]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """The processor seconds of a command with its children, and how it ended."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def row_of(case: Case) -> tuple[str, float]:
    """The line of a case in the table, and its ratio."""
    audit = [sys.executable, "-m", "orderproof", "audit", case.spec, *case.options]
    seconds, done = processor_seconds(audit)
    imports = processor_seconds(
        [sys.executable, "-c", f"import runpy; runpy.run_path({case.spec.rpartition(':')[0]!r})"]
    )[0]
    line = next(
        (text.split("line", 1)[1].strip() for text in done.stdout.splitlines() if text.strip().startswith("line ")), ""
    )
    cells = (case.title, str(done.returncode), line, f"{seconds:.1f}", f"{imports:.1f}", f"{seconds / imports:.2f}")
    return f"| {' | '.join(cells)} |", seconds / imports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the table to this file too")
    arguments = parser.parse_args()
    rows, ratios = [], []
    print(HEAD)
    for case in CASES:
        row, ratio = row_of(case)
        print(row, flush=True)
        rows.append(row)
        ratios.append(ratio)
    median = f"median ratio {statistics.median(ratios):.2f}, wanted at most 2"
    print(median)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(["# Cases", "", HEAD, *rows, "", median, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
