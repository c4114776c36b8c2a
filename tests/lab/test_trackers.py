"""A tracker receives every finished run; its failures are reported and do not stop a study."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from orderproof.errors import UsageError
from orderproof.lab.result import RunResult
from orderproof.lab.trackers import SUPPORTED_TRACKERS, Tracker
from tests.lab.small_study import tiny_study


class Fake(ModuleType):
    """A tracker that records its calls."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []

    def init(self, **arguments: Any) -> None:
        self.calls.append(("init", arguments))

    def log(self, values: dict[str, float], *, step: int) -> None:
        self.calls.append(("log", (step, values)))

    def finish(self) -> None:
        self.calls.append(("finish", None))


@pytest.mark.parametrize("name", SUPPORTED_TRACKERS)
def test_a_tracker_receives_the_configuration_the_curve_and_the_scores(
    name: str, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, RunResult]
) -> None:
    fake = Fake(name)
    monkeypatch.setitem(sys.modules, name, fake)
    run = tiny_study().runs()[2]
    result = undisturbed[run.id]
    assert Tracker(name, study="tiny").log_run(run, result) is None
    assert fake.calls == [
        ("init", {"project": "tiny", "name": run.id, "config": run.to_dict()}),
        *[("log", (point.step, {"loss": point.loss, "score": point.score})) for point in result.curve],
        ("log", (151, {"length 6": result.lengths[0].score})),
        ("finish", None),
    ]
    assert [point.step for point in result.curve] == [50, 100, 150]


def test_a_partly_logged_run_is_finished_in_the_tracker(
    monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, RunResult]
) -> None:
    fake = Fake("wandb")
    monkeypatch.setattr(fake, "log", lambda values, step: 1 / 0)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    run = tiny_study().runs()[0]
    assert Tracker("wandb", study="tiny").log_run(run, undisturbed[run.id]) is not None
    assert fake.calls[-1] == ("finish", None)


def test_a_failing_tracker_returns_a_message(
    monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, RunResult]
) -> None:
    fake = Fake("wandb")
    monkeypatch.setattr(fake, "init", lambda **arguments: 1 / 0)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    run = tiny_study().runs()[0]
    message = Tracker("wandb", study="tiny").log_run(run, undisturbed[run.id])
    assert message == "wandb failed: ZeroDivisionError: division by zero"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(UsageError, match="--tracker trackio needs the package trackio: pip install trackio"):
        Tracker("trackio", study="tiny")


def test_an_unknown_tracker_is_refused() -> None:
    with pytest.raises(UsageError, match="expected --tracker wandb or trackio; got 'paper'"):
        Tracker("paper", study="tiny")
