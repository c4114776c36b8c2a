"""How often the architectures of the last atlas use each operator; written by `scripts/usage.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import torch

from orderproof.prover.rule import Rule, find


@dataclass(frozen=True)
class Usage:
    """The counts of one atlas."""

    architectures: int
    transformers: str
    operators: dict[str, int]  # aten.add.Tensor -> how many architectures' graphs hold it

    def of(self, name: str) -> int:
        """How many use an operator, named as a rule names it: with its overload or without."""
        full = name if name.startswith("transformers.") else f"aten.{name}"
        exact = self.operators.get(full, 0)
        return exact or max((n for each, n in self.operators.items() if each.rpartition(".")[0] == full), default=0)

    def by_tag(self, lemma: str) -> dict[str, int]:
        """The operators that a rule covers by their tag, not by name."""
        found: dict[str, int] = {}
        for name, count in self.operators.items():
            rule = _rule_of(name)
            short = ".".join(name.split(".")[1:2])
            if rule is not None and rule.lemma == lemma and "<pointwise>" in rule.operators:
                found[short] = max(count, found.get(short, 0))
        return found

    def without_rule(self) -> dict[str, int]:
        """The operators that no rule covers, the most used first."""
        return {name: count for name, count in self.operators.items() if _rule_of(name) is None}


def _rule_of(name: str) -> Rule | None:
    space, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    target: Any = getattr(getattr(torch.ops, space), packet, None)
    return find(getattr(target, overload, name) if target is not None else name)


@cache
def usage() -> Usage:
    """The counts that come with the package."""
    data = json.loads(resources.files("orderproof.prover").joinpath("usage.json").read_text(encoding="utf-8"))
    return Usage(data["architectures"], data["transformers"], data["operators"])
