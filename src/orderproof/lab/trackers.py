"""Sending finished runs to a tracker besides the store: wandb, or trackio, which has the same interface.

A run that was finished before is not sent again.
"""

from __future__ import annotations

import importlib
from typing import Any

from orderproof.errors import UsageError
from orderproof.lab.configuration import RunConfig
from orderproof.lab.result import RunResult

KNOWN = ("wandb", "trackio")


class Tracker:
    """One of the known trackers. Raises `UsageError` for another one, and where its package is missing."""

    def __init__(self, name: str, *, study: str) -> None:
        if name not in KNOWN:
            raise UsageError(f"expected --tracker {' or '.join(KNOWN)}; got {name!r}")
        try:
            self.module: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UsageError(f"--tracker {name} needs the package {error.name}: pip install {name}") from error
        self.study = study

    def send(self, run: RunConfig, result: RunResult) -> None:
        """A run, its learning curve, and its scores by length."""
        self.module.init(project=self.study, name=result.id, config=result.config)
        for point in result.curve:
            self.module.log({"loss": point.loss, "score": point.score}, step=point.step)
        last = {f"length {at.length}": at.score for at in result.lengths}
        self.module.log(last, step=run.steps + 1)
        self.module.finish()
