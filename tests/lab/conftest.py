"""What the runs of the small study come to, undisturbed and in this process."""

from __future__ import annotations

import pytest

from orderproof.lab.result import RunResult
from orderproof.lab.trainer import train
from tests.lab.small_study import tiny_study


@pytest.fixture(scope="session")
def undisturbed() -> dict[str, RunResult]:
    return {run.id: train(run) for run in tiny_study().runs()}
