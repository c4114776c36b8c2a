"""Operator counts of the last atlas, which `tools/operator_usage.py` writes into the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class OperatorUsage:
    """The number of architectures that use each operator."""

    architectures: int
    transformers: str
    operators: dict[str, int]  # aten.add.Tensor -> number of architectures
    pointwise: frozenset[str]  # those of them that torch tags as pointwise

    def of(self, name: str) -> int:
        """The count of an operator, named as in a rule: with or without its overload."""
        full = name if name.startswith("transformers.") else f"aten.{name}"
        exact = self.operators.get(full, 0)
        return exact or max((n for each, n in self.operators.items() if each.rpartition(".")[0] == full), default=0)


@cache
def operator_usage() -> OperatorUsage:
    """The counts bundled with the package."""
    data = json.loads(resources.files("orderproof.atlas").joinpath("operator_usage.json").read_text(encoding="utf-8"))
    return OperatorUsage(data["architectures"], data["transformers"], data["operators"], frozenset(data["pointwise"]))
