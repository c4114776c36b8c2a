"""Experiment trackers that receive each newly finished run in addition to the store.

wandb and trackio have the same interface.
"""

from __future__ import annotations

import importlib
from typing import Any

from orderproof.errors import UsageError, first_line
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig

SUPPORTED_TRACKERS = ("wandb", "trackio")


class Tracker:
    """A supported tracker. Raises `UsageError` for an unknown name or a missing package."""

    def __init__(self, name: str, *, study: str) -> None:
        if name not in SUPPORTED_TRACKERS:
            raise UsageError(f"expected --tracker {' or '.join(SUPPORTED_TRACKERS)}; got {name!r}")
        try:
            self.module: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UsageError(f"--tracker {name} needs the package {error.name}: pip install {name}") from error
        self.study = study

    def log_run(self, run: RunConfig, result: RunResult) -> str | None:
        """Send a run with its learning curve and its scores by length; return a message if that fails, else None."""
        try:
            self._send(run, result)
        except Exception as error:  # noqa: BLE001 - no failure of a tracker stops the study
            return f"{self.module.__name__} failed: {first_line(error)}"
        return None

    def _send(self, run: RunConfig, result: RunResult) -> None:
        self.module.init(project=self.study, name=result.id, config=result.config)
        try:
            for point in result.curve:
                self.module.log({"loss": point.loss, "score": point.score}, step=point.step)
            final = {f"length {at.length}": at.score for at in result.lengths}
            self.module.log(final, step=run.steps + 1)
        finally:  # the next run would be logged to a run left open
            self.module.finish()
