"""Processor seconds of the commands that need no model: help, lists and refusals, each in a fresh process.

    python benchmarks/commands.py                                         a minute
    python benchmarks/commands.py --markdown docs/evidence/benchmarks/commands.md   and write the page

User and system time of the process, the smallest of three runs, with one thread. The limit of each is one second, less
than the import of torch takes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

COMMAND = "python benchmarks/commands.py --markdown docs/evidence/benchmarks/commands.md"
LIMIT = 1.0  # [s] of processor time
REPEATS = 3
COMMANDS = (
    "", "audit", "prove", "atlas", "card", "claims", "compare", "ceiling", "conventions", "engines", "explain", "init",
    "list", "ports", "recheck", "repro", "sensitivity", "training",
)  # fmt: skip
ANSWERS = (
    *(f"{name} --help".strip() for name in COMMANDS),
    *(f"list {name}" for name in ("laws", "encodings", "rules", "questions", "studies")),
)
REFUSALS = (
    "nonsense",
    "audit --nonsense",
    "list nonsense",
    "audit missing_file",
    "audit ./missing.py:f",
    "audit arch:lama",
    "audit --law nothing",
    "audit --expect nothing=holds",
    "audit --length 1",
    "prove arch:llama --law causl",
    "card missing.json",
    "recheck missing.json",
    "repro OP402 missing_file",
    "ports nosuch",
    "engines install mlx",
    "claims 99",
    "ceiling nothing",
    "conventions torch.spda",
    "compare nothing",
    "sensitivity missing_file",
    "sensitivity - missing.txt",
    "explain --report missing.json",
    "atlas nosuch",
    "atlas --from-json missing.json",
)
HEADER = ("command", "exit code", "seconds")


def processor_seconds(arguments: Sequence[str]) -> tuple[int, float]:
    """The exit code of a command in a fresh process, and its processor time [s]."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "orderproof", *arguments],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(command: str, repeats: int) -> tuple[str, str, str]:
    """The row of a command. Raises `RuntimeError` if it does not end as documented."""
    runs = [processor_seconds(shlex.split(command)) for _ in range(repeats)]
    (code,) = {code for code, _ in runs}
    if code != (0 if command in ANSWERS else 2):
        raise RuntimeError(f"expected `orderproof {command}` to exit with {0 if command in ANSWERS else 2}; got {code}")
    return f"orderproof {command}", str(code), f"{min(seconds for _, seconds in runs):.2f}"


def slowest(rows: Sequence[tuple[str, str, str]]) -> str:
    """The slowest command, compared with the limit."""
    command, _, seconds = max(rows, key=lambda row: float(row[2]))
    return (
        f"slowest: {seconds} s ({command}), {'within' if float(seconds) <= LIMIT else 'ABOVE'} the limit of {LIMIT} s"
    )


def page(about: str, rows: Sequence[tuple[str, str, str]]) -> str:
    """The page in Markdown."""
    table = [HEADER, ("---", "---", "---"), *((f"`{command}`", code, seconds) for command, code, seconds in rows)]
    return "\n".join(
        [
            "# Benchmarks of the commands\n",
            f"Written by `{COMMAND}`; not edited by hand.\n",
            f"{about}\n",
            (
                "Processor seconds of the commands that need no model, each in a fresh process: the smallest of "
                f"{REPEATS} runs. The limit is {LIMIT} s, less than the import of torch takes.\n"
            ),
            *(f"| {' | '.join(row)} |" for row in table),
            f"\n{slowest(rows)}",
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS, help="runs of each command")
    parser.add_argument("--markdown", metavar="PATH", help="write the page to this file")
    chosen = parser.parse_args(arguments)
    today = dt.datetime.now(dt.UTC).date()
    about = f"{today}, {platform.machine()}, one thread, Python {platform.python_version()}, torch {version('torch')}."
    print(f"{about}\nlimit: {LIMIT} s of processor time\n" + "\t".join(HEADER))
    rows = []
    for command in (*ANSWERS, *REFUSALS):
        rows.append(measure(command, chosen.repeats))
        print("\t".join(rows[-1]), flush=True)
    print(slowest(rows))
    if chosen.markdown:
        Path(chosen.markdown).write_text(page(about, rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
