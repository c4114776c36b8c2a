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
import tomllib
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from processor import processor

COMMAND = "python benchmarks/cases.py --markdown docs/evidence/benchmarks/cases.md"
FOLDER = Path(__file__).resolve().parent.parent / "tests" / "cases"
OPTIONS = {"kind": "--as", "law": "--law", "mode": "--mode"}
HEAD = "| case | exit | fails at | seconds | imports | ratio |\n| --- | --- | --- | --- | --- | --- |"


def processor_seconds(command: list[str]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """The processor seconds of a command with its children, and how it ended."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def row_of(case: dict[str, str]) -> tuple[str, float]:
    """The line of a case in the table, and its ratio."""
    file = FOLDER / "modules" / f"{case['file']}.py"
    options = [part for key, option in OPTIONS.items() if key in case for part in (option, case[key])]
    seconds, done = processor_seconds([sys.executable, "-m", "orderproof", "audit", f"{file}:{case['name']}", *options])
    imports = processor_seconds([sys.executable, "-c", f"import runpy; runpy.run_path({str(file)!r})"])[0]
    lines = (text.split("line", 1)[1].strip() for text in done.stdout.splitlines() if text.strip().startswith("line "))
    title = " ".join([f"{case['file']}:{case['name']}", *options])
    numbers = (str(done.returncode), next(lines, ""), f"{seconds:.1f}", f"{imports:.1f}", f"{seconds / imports:.2f}")
    return f"| {' | '.join((title, *numbers))} |", seconds / imports


def page(rows: Sequence[str], median: str) -> str:
    """The page in Markdown."""
    title, about = "# Benchmarks of small modules", (__doc__ or "").split("\n\n")
    table = "\n".join((HEAD, *rows))
    parts = [title, f"Written by `{COMMAND}`; not edited by hand.", " ".join(processor()), about[0], about[2].strip()]
    return "\n\n".join([*parts, table, f"{median[0].upper()}{median[1:]}."]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the table to this file too")
    arguments = parser.parse_args()
    rows, ratios, reported = [], [], []
    print(HEAD)
    listed = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    for case in listed["case"]:
        row, ratio = row_of(case)
        print(row, flush=True)
        rows.append(row)
        ratios.append(ratio)
        reported += [ratio] * (case["file"] in listed["reported"])
    median = (
        f"median ratio {statistics.median(reported):.2f} over the {len(reported)} cases of others, wanted at most 2; "
    )
    median += f"{statistics.median(ratios):.2f} over all {len(ratios)}"
    print(median)
    if arguments.markdown:
        arguments.markdown.write_text(page(rows, median), encoding="utf-8")


if __name__ == "__main__":
    main()
