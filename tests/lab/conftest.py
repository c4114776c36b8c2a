"""What the runs of the small study come to, undisturbed and in this process."""

from __future__ import annotations

import pytest

from orderproof.lab.result import RunResult
from orderproof.lab.training import train
from tests.lab.running import tiny


@pytest.fixture(scope="session")
def undisturbed() -> dict[str, RunResult]:
    return {run.id: train(run) for run in tiny().runs()}
