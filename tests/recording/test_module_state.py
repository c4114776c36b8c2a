"""State that a call changes outside its tensors is named, and restored where that is possible."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable

import numpy as np
import pytest
import sympy
import torch
from torch import Tensor, nn

from orderproof.recording.module_state import preserved_state

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


class Symbolic(nn.Module):
    """Reaches a library that torch's open sizes change while a call is recorded."""

    def forward(self, x: Tensor) -> Tensor:
        return x * len(sympy.S._classes_to_install)


def test_the_registries_of_sympy_are_not_restored() -> None:
    with preserved_state(Symbolic()) as changed:
        sympy.S.register(type("NumberOfThisTest", (sympy.Basic,), {}))
    assert sympy.S._classes_to_install.pop("NumberOfThisTest") is not None
    assert changed.names == []


class Wrapping(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * len(textwrap.wrap("some words", 4))


def test_annotations_that_python_makes_when_they_are_read_are_no_state() -> None:
    assert "__annotations__" not in vars(textwrap.TextWrapper)
    with preserved_state(Wrapping()) as changed:
        assert textwrap.TextWrapper.__annotations__ == {}
    assert changed.names == []
