"""What a planted fault is: a small model with a known defect, the laws that must catch it, and where it was seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from orderproof.adapter import ModelAdapter


@dataclass(frozen=True)
class Planted:
    """One planted fault. Where `reports` names public reports, it is a reconstruction of what they describe."""

    of: type  # whose docstring says what is wrong
    make: Callable[[], ModelAdapter]
    laws: tuple[str, ...]  # that must catch it
    reports: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.of.__name__

    @property
    def what(self) -> str:
        """What is wrong, in a sentence."""
        return " ".join((inspect.getdoc(self.of) or "").split("\n\n")[0].split())
