"""Random generators that a call uses are named and restored."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from orderproof.prover.recording.module_state import preserved_state

DRAWS: dict[str, Callable[[], object]] = {
    "Python's random generator": random.random,
    "torch's random generator": lambda: torch.rand(1),
    "numpy's random generator": np.random.rand,
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_that_is_used_is_named_and_restored(name: str) -> None:
    with preserved_state(nn.Linear(2, 2)) as changed:
        first = DRAWS[name]()
    assert changed.names == [name]
    assert DRAWS[name]() == first


def test_a_call_that_draws_nothing_changes_nothing() -> None:
    with preserved_state(nn.Linear(2, 2)) as changed:
        pass
    assert changed.names == []
