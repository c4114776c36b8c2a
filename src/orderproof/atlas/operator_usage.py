"""Operator counts of the last atlas, which `tools/operator_usage.py` writes into the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import torch

from orderproof.prover.rule import Rule, find_rule


@dataclass(frozen=True)
class OperatorUsage:
    """The number of architectures that use each operator."""

    architectures: int
    transformers: str
    operators: dict[str, int]  # aten.add.Tensor -> number of architectures

    def of(self, name: str) -> int:
        """The count of an operator, named as in a rule: with or without its overload."""
        full = name if name.startswith("transformers.") else f"aten.{name}"
        exact = self.operators.get(full, 0)
        return exact or max((n for each, n in self.operators.items() if each.rpartition(".")[0] == full), default=0)

    def by_tag(self, lemma: str) -> dict[str, int]:
        """The operators, with counts, that a rule covers by their tag and not by name."""
        counts: dict[str, int] = {}
        for name, count in self.operators.items():
            rule = _find_rule(name)
            short = ".".join(name.split(".")[1:2])
            if rule is not None and rule.lemma == lemma and "<pointwise>" in rule.operators:
                counts[short] = max(count, counts.get(short, 0))
        return counts

    def without_rule(self) -> dict[str, int]:
        """The operators that no rule covers, by descending count."""
        return {name: count for name, count in self.operators.items() if _find_rule(name) is None}


def _find_rule(name: str) -> Rule | None:
    space, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    target: Any = getattr(getattr(torch.ops, space), packet, None)
    return find_rule(getattr(target, overload, name) if target is not None else name)


@cache
def operator_usage() -> OperatorUsage:
    """The counts bundled with the package."""
    data = json.loads(resources.files("orderproof.atlas").joinpath("operator_usage.json").read_text(encoding="utf-8"))
    return OperatorUsage(data["architectures"], data["transformers"], data["operators"])
