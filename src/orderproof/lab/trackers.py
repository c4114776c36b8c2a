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

    def send(self, run: RunConfig, result: RunResult) -> str | None:
        """Send a run, its learning curve, and its scores by length; why that failed, if it did: no reason to stop."""
        try:
            self._send(run, result)
        except Exception as error:  # noqa: BLE001 - a tracker's network, disk or account is no matter of the study
            return f"{self.module.__name__} did not take it: {type(error).__name__}: {' '.join(str(error).split())}"
        return None

    def _send(self, run: RunConfig, result: RunResult) -> None:
        self.module.init(project=self.study, name=result.id, config=result.config)
        try:
            for point in result.curve:
                self.module.log({"loss": point.loss, "score": point.score}, step=point.step)
            last = {f"length {at.length}": at.score for at in result.lengths}
            self.module.log(last, step=run.steps + 1)
        finally:  # a run left open could take in the next one
            self.module.finish()
