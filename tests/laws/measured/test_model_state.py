"""The state of a model between calls is compared at every depth, and a copy serves until a call changes it."""

from __future__ import annotations

import functools
import random
from collections import deque
from typing import Any

import pytest
import torch
from torch import nn

from orderproof.adapter import copy_sharing_parameters
from orderproof.auditing.decide.measurement import measure_law
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.model_state import PristineModel, has_same_state
from orderproof.models import from_module


class Settings:
    """An object with attributes, as a configuration."""

    def __init__(self) -> None:
        self.names = {"a": [1, 2, {"b": 3.0}]}


class Box(nn.Module):
    """A model that keeps state in many places."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("table", torch.zeros(3))
        self.config = Settings()
        self.cache: dict[str, Any] = {}
        self.seen = {1, 2}
        self.call = functools.partial(torch.add, alpha=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


CHANGES = {
    "a buffer": lambda m: m.table.add_(1),
    "a nested list": lambda m: m.config.names["a"].append(4),
    "a nested number": lambda m: m.config.names["a"][2].update(b=4.0),
    "a new key": lambda m: m.cache.update(k=torch.ones(1)),
    "an attribute of a part": lambda m: setattr(m.linear, "count", 1),
    "an object that is replaced": lambda m: setattr(m, "config", None),
    "a set": lambda m: m.seen.add(3),
    "a partial function": lambda m: m.call.keywords.update(alpha=2),
    "the mode": lambda m: m.eval(),
    "a hook": lambda m: m.linear.register_forward_hook(lambda *_: None),
    "a parameter that is replaced": lambda m: setattr(m.linear, "weight", nn.Parameter(m.linear.weight * 2)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_state_is_seen(change: str) -> None:
    model = Box()
    first = PristineModel(model)
    model(torch.ones(2, 4))
    assert first.is_state_of(model)
    CHANGES[change](model)
    assert not first.is_state_of(model)


@pytest.mark.parametrize("value", [random.Random(0), torch.Generator(), deque([1]), type("Number", (int,), {})(3)])
def test_what_attributes_do_not_show_counts_as_changed(value: object) -> None:
    model = nn.Linear(2, 2)
    model.held = value  # type: ignore[assignment]
    other = nn.Linear(2, 2)
    other.held = type(value)() if not isinstance(value, deque) else deque([1])  # type: ignore[assignment]
    assert not has_same_state(model.__dict__["held"], other.__dict__["held"])


def test_a_copy_serves_until_a_call_changes_it() -> None:
    first = PristineModel(Box())
    shared = first.shared()
    assert first.shared() is shared
    assert first.own() is not shared
    shared.table.add_(1)  # type: ignore[operator]
    again = first.shared()
    assert again is not shared
    assert not bool(again.table.any())  # type: ignore[operator]


def test_a_copy_shares_the_parameters() -> None:
    model = Box()
    assert copy_sharing_parameters(model).linear.weight is model.linear.weight  # type: ignore[union-attr]


class Noisy(nn.Module):
    """Rounds by the number of rows in float32: batches differ, and in float64 hardly."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        big = 3000.0 * len(x)
        return self.linear(x + x.mean(1, keepdim=True)) + big - big


def test_a_model_without_state_is_not_called_again_on_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comparison differs by rounding; the first is repeated on a copy, and no other, since nothing changed."""
    subject = from_module(Noisy(), torch.randn(3, 7, 4))
    assert subject.build_adapter is not None
    asked: list[bool] = []
    original = CachedCalls.as_before_the_first_call

    def counted(self: CachedCalls, *, own: bool = False) -> CachedCalls | None:
        asked.append(self.is_in_first_state())
        return original(self, own=own)

    monkeypatch.setattr(CachedCalls, "as_before_the_first_call", counted)
    calls = CachedCalls(subject.build_adapter())
    calls.remember_first_state()
    found = measure_law(calls.adapter, find_law("batch_composition"), calls, kind="encoder")  # type: ignore[arg-type]
    assert found.verdict == "held"
    assert found.measurement is not None
    doubted = [c for c in found.measurement.comparisons if c.float64 is not None]
    assert len(doubted) >= 2
    # each doubt asks for a float64 copy, and the first one for the comparison on a copy and its float64 copy
    assert len(asked) == len(doubted) + 2
    assert all(asked)
