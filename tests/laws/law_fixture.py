"""The fixtures of the laws: for each law a small model that obeys it and the same model with one fault.

`fixtures/` holds one file per law, which defines `FIXTURE`. The folder is the register: nothing is listed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from torch import nn

from orderproof import registry
from orderproof.adapter import ModelAdapter

Subject = TypeVar("Subject", nn.Module, ModelAdapter)


@dataclass(frozen=True)
class LawFixture(Generic[Subject]):
    """Two models for one law: modules that take [batch, token, 8] for a proved law, adapters for a measured one."""

    law: str
    conforming: Callable[[], Subject]
    violating: Callable[[], Subject]


@cache
def law_fixtures() -> dict[str, LawFixture]:  # type: ignore[type-arg]
    """The fixture of each law, by the name of the law."""
    return {fixture.law: fixture for fixture in registry.discover("tests.laws.fixtures", "FIXTURE", LawFixture)}
