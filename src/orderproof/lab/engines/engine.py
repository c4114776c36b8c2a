"""The interface of an engine, which executes runs and yields their results in the order they finish.

A job is one run, or the runs of a batch, which are trained together. It is sent as JSON and its outcomes return as
JSON, so that workers exchange only text. Every engine calls the same function, `run_job`, so results do not depend on
the engine. If a worker dies, the engine submits its job again; a single run resumes from its checkpoint if the folder
is shared.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderproof.errors import OrderproofError, StoreError, first_line
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig

MAX_ATTEMPTS = 3
"""Attempts for a run whose worker dies."""
RESULT, FAILED, STOP = "result", "failed", "stop"


@dataclass(frozen=True, kw_only=True)
class RunFailure:
    """A run without a result, and the reason."""

    id: str
    reason: str


RunOutcome = RunResult | RunFailure
Job = tuple[RunConfig, ...]


def jobs(runs: Iterable[RunConfig]) -> list[Job]:
    """The runs as jobs: those of `RunConfig.batch_id` together, the others one by one."""
    grouped: dict[str, list[RunConfig]] = {}
    for run in runs:
        grouped.setdefault(run.batch_id if run.batched else run.id, []).append(run)
    return [tuple(job) for job in grouped.values()]


class Engine(ABC):
    """Executes runs."""

    workers: int | None
    """Concurrent runs; None for as many as there is room for."""

    @abstractmethod
    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        """Yield the outcome of each run as it finishes. Raises `StoreError` if no checkpoint can be written.

        Closing the iterator stops the unfinished runs; their checkpoints stay.
        """


def run_job(text: str, checkpoints: str) -> str:
    """Execute a job, from JSON to JSON; the function that every worker of every engine calls."""
    from orderproof.lab.seed_batch import train_together
    from orderproof.lab.trainer import train

    outcome: dict[str, Any]
    try:
        runs = [RunConfig.model_validate(run) for run in json.loads(text)]
        results = train_together(runs) if runs[0].batched else [train(run, Path(checkpoints)) for run in runs]
        outcome = {RESULT: [result.model_dump(mode="json") for result in results]}
    except StoreError as error:
        outcome = {STOP: str(error)}
    except OrderproofError as error:
        outcome = {FAILED: str(error)}
    except Exception as error:  # noqa: BLE001 - any exception fails this run only
        outcome = {FAILED: first_line(error)}
    return json.dumps(outcome)


def parse_outcomes(text: str, job: Job) -> list[RunOutcome]:
    """The outcomes that `run_job` returned for this job. Raises `StoreError` if it could not write a checkpoint."""
    outcome = json.loads(text)
    if STOP in outcome:
        raise StoreError(outcome[STOP])
    if FAILED in outcome:
        return failures(job, outcome[FAILED])
    return [RunResult.model_validate(result) for result in outcome[RESULT]]


def serialise_job(job: Job) -> str:
    """The job as `run_job` expects it."""
    return json.dumps([run.to_dict() for run in job])


def failures(job: Job, reason: str) -> list[RunOutcome]:
    """The failure of each run of a job."""
    return [RunFailure(id=run.id, reason=reason) for run in job]


def worker_died(job: Job) -> list[RunOutcome]:
    """The failures of a job whose worker died at every attempt."""
    return failures(job, f"its worker died {MAX_ATTEMPTS} times (out of memory?)")
