"""A study small enough to be run many times, and what the tests of its running share."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import Engine, Told, compute, read, text_of
from orderproof.lab.result import RunResult
from orderproof.lab.study import StudyConfig, parse

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

PATIENCE = 120  # seconds to wait for what must happen, on a machine with other work


def tiny() -> StudyConfig:
    return parse(TINY, title="tiny")


def one(**changes: Any) -> RunConfig:
    """The first run of the study, changed."""
    return RunConfig.model_validate({**tiny().runs()[0].plain(), **changes})


def told(result: RunResult) -> dict[str, Any]:
    """All of a result that is a function of its configuration: all but the times."""
    return result.model_dump(exclude={"seconds", "tokens_per_second"})


def until(happened: Callable[[], Any], *, pause: float = 0.005) -> Any:
    """What has happened, as soon as it has."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := happened():
            return found
        time.sleep(pause)
    raise AssertionError("it did not happen in time")


def command(study: Path, store: Path, *more: str) -> list[str]:
    """`orderproof compare`, for a process of its own."""
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


def marked(mark: str) -> list[int]:
    """The processes that were started with this in their environment, and have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and not ended(int(folder.name)):
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return [number for number in found if number != os.getpid()]


def ended(process: int) -> bool:
    """Whether a process is gone, or waits only for its parent to hear that it is."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def descendants(process: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found, more = [], [process]
    while more:
        more = [child for child, parent in parents.items() if parent in more]
        found += more
    return found


class Stopped(Exception):
    """In place of a power cut."""


def stop_at(last: int) -> Callable[[int], None]:
    """What `train` tells its steps to, to be stopped after one of them."""

    def hear(number: int) -> None:
        if number == last:
            raise Stopped

    return hear


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """A disk without room, as the kernel tells it: no file may grow past this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Here(Engine):
    """The runs one after the other in this process."""

    workers = 1

    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        for run in runs:
            yield read(compute(text_of(run), str(checkpoints)), name=run.id)
