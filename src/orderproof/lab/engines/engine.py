"""The interface of an engine, which executes runs and yields their results in the order they finish.

A run is sent as JSON and its outcome returns as JSON, so that workers exchange only text. Every engine calls the same
function, `run_job`, so results do not depend on the engine. If a worker dies, the engine submits its run again, which
resumes from its checkpoint if the folder is shared.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
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
    """Execute one run, from JSON to JSON; the function that every worker of every engine calls."""
    from orderproof.lab.trainer import train

    outcome: dict[str, Any]
    try:
        run = RunConfig.model_validate(json.loads(text))
        outcome = {RESULT: train(run, Path(checkpoints)).model_dump(mode="json")}
    except StoreError as error:
        outcome = {STOP: str(error)}
    except OrderproofError as error:
        outcome = {FAILED: str(error)}
    except Exception as error:  # noqa: BLE001 - any exception fails this run only
        outcome = {FAILED: first_line(error)}
    return json.dumps(outcome)


def parse_outcome(text: str, *, run_id: str) -> RunOutcome:
    """The outcome that `run_job` returned for this run. Raises `StoreError` if it could not write a checkpoint."""
    outcome = json.loads(text)
    if STOP in outcome:
        raise StoreError(outcome[STOP])
    if FAILED in outcome:
        return RunFailure(id=run_id, reason=outcome[FAILED])
    return RunResult.model_validate(outcome[RESULT])


def serialise_run(run: RunConfig) -> str:
    """The run as `run_job` expects it."""
    return json.dumps(run.to_dict())


def worker_died(run_id: str) -> RunFailure:
    """The failure of a run whose worker died at every attempt."""
    return RunFailure(id=run_id, reason=f"its worker died {MAX_ATTEMPTS} times (out of memory?)")
