"""What an engine is: it takes runs and gives back their results, in whatever order they finish.

A run is sent as its configuration in JSON, and its result comes back as JSON, so that nothing but text has to travel.
Every engine calls the same function, `compute`: the results cannot depend on the engine. An engine survives the death
of a worker: it sends the run again, which goes on from its checkpoint where the folder is shared.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orderproof.lab.configuration import RunConfig
from orderproof.lab.result import RunResult

ATTEMPTS = 3  # for a run whose worker died


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that came to nothing, and why."""

    id: str
    reason: str


Told = RunResult | Failure


class Engine(ABC):
    """Where runs are computed."""

    @abstractmethod
    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        """The result of each run, or why there is none, as they finish.

        Closing the iterator ends what is under way; checkpoints stay.
        """


def compute(text: str, checkpoints: str) -> str:
    """One run, from JSON to JSON: what every worker of every engine does."""
    from orderproof.lab.training import train

    run = RunConfig.model_validate(json.loads(text))
    return train(run, Path(checkpoints)).model_dump_json()
