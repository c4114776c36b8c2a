"""What every test runs under: one thread, one seed, and property tests that draw the same examples each time."""

from __future__ import annotations

import gc

import pytest
import torch
from hypothesis import settings

import orderproof.diagnosis.rule  # noqa: F401 - rules, by which recordings keep operators whole
from orderproof.models import trial_call

torch.set_num_threads(1)  # the tensors here are so small that a second thread only waits
gc.set_threshold(100_000, 20, 20)  # the objects of thousands of tests are many, and most live to the end

settings.register_profile("orderproof", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("orderproof")


def pytest_collection_finish() -> None:
    """Keep what was imported out of later garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed() -> int:
    """The seed every test starts from."""
    torch.manual_seed(0)
    return 0


@pytest.fixture(autouse=True)
def no_trials(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """First calls without a trial in a forked process, as where processes cannot fork.

    A fork of a process that has run thousands of tests costs more than most calls. Tests of trials have the mark
    `trials`; each command that a test starts makes them.
    """
    if request.node.get_closest_marker("trials") is None:
        monkeypatch.setattr(trial_call, "can_fork", lambda: False)
