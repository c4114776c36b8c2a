"""A study small enough to run many times, with helpers for the tests that run it."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orderproof.lab.engines.engine import Engine, RunOutcome, jobs, parse_outcomes, run_job, serialise_job
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.study import StudyConfig, parse_study

TINY = """
name: tiny
base:
  question: {name: who_did_what, nouns: 4}
  width: 16
  heads: 2
  layers: 1
  steps: 150
  batch: 8
  warmup: 5
  measure_every: 50
  keep_every: 10
grid: {encoding: [none, rotary]}
seeds: 2
"""

TIMEOUT = 120  # seconds, generous for a loaded machine


def tiny_study() -> StudyConfig:
    return parse_study(TINY, title="tiny")


def tiny_run(**changes: Any) -> RunConfig:
    """The first run of the study, with changed settings."""
    return RunConfig.model_validate({**tiny_study().runs()[0].to_dict(), **changes})


def reproducible_part(result: RunResult) -> dict[str, Any]:
    """A result without its times: the part that is a function of the configuration."""
    return result.model_dump(exclude={"seconds", "tokens_per_second"})


def wait_until(condition: Callable[[], Any], *, pause: float = 0.005) -> Any:
    """The first true value of a condition."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(pause)
    raise AssertionError("timed out")


def compare_command(study: Path, store: Path, *more: str) -> list[str]:
    """The arguments of a process that runs `orderproof compare`."""
    program = "from orderproof.cli.application import main; main()"
    return [
        sys.executable,
        "-c",
        program,
        "compare",
        str(study),
        "--store",
        str(store),
        "--workers",
        "2",
        "--quiet",
        *more,
    ]


def processes_with(mark: str) -> list[int]:
    """The running processes with this text in their environment."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and not has_ended(int(folder.name)):
                pids.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return [pid for pid in pids if pid != os.getpid()]


def has_ended(process: int) -> bool:
    """Whether a process is gone or a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


class Stopped(Exception):
    """Simulates a power failure."""


def stop_at(last: int) -> Callable[[int], None]:
    """An `on_step` callback that stops the training after this step."""

    def on_step(number: int) -> None:
        if number == last:
            raise Stopped

    return on_step


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """Limit the size of files [bytes], to simulate a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class InProcessEngine(Engine):
    """Executes the runs one after the other in this process."""

    workers = 1

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        for job in jobs(runs):
            yield from parse_outcomes(run_job(serialise_job(job), str(checkpoints)), job)
