"""What an engine is: it takes runs and gives back their results, in whatever order they finish.

A run is sent as its configuration in JSON, and what came of it is told in JSON, so that nothing but text has to travel.
Every engine calls the same function, `compute`: the results cannot depend on the engine. An engine survives the death
of a worker: it sends the run again, which goes on from its checkpoint where the folder is shared.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderproof.errors import OrderproofError, StoreError
from orderproof.lab.configuration import RunConfig
from orderproof.lab.result import RunResult

ATTEMPTS = 3  # for a run whose worker died
RESULT, FAILED, STOP = "result", "failed", "stop"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that came to nothing, and why."""

    id: str
    reason: str


Told = RunResult | Failure


class Engine(ABC):
    """Where runs are computed."""

    workers: int | None
    """Runs at the same time; None: as many as there is room for."""

    @abstractmethod
    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        """The result of each run, or why there is none, as they finish. Raises `StoreError` where nothing can be kept.

        Closing the iterator ends what is under way; checkpoints stay.
        """


def compute(text: str, checkpoints: str) -> str:
    """One run, from JSON to JSON: what every worker of every engine does."""
    from orderproof.lab.training import train

    told: dict[str, Any]
    try:
        run = RunConfig.model_validate(json.loads(text))
        told = {RESULT: train(run, Path(checkpoints)).model_dump(mode="json")}
    except StoreError as error:
        told = {STOP: str(error)}
    except OrderproofError as error:
        told = {FAILED: str(error)}
    except Exception as error:  # noqa: BLE001 - one run that fails is one failure, whatever it raised
        told = {FAILED: f"{type(error).__name__}: {' '.join(str(error).split())}"}
    return json.dumps(told)


def read(text: str, *, name: str) -> Told:
    """What `compute` told of the run with this name. Raises `StoreError` where it could keep nothing."""
    told = json.loads(text)
    if STOP in told:
        raise StoreError(told[STOP])
    if FAILED in told:
        return Failure(id=name, reason=told[FAILED])
    return RunResult.model_validate(told[RESULT])


def text_of(run: RunConfig) -> str:
    """The run as `compute` takes it."""
    return json.dumps(run.plain())


def died(name: str) -> Failure:
    """The failure of a run whose worker died every time."""
    return Failure(id=name, reason=f"its worker died {ATTEMPTS} times (out of memory?)")
