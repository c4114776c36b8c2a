"""The table of operators: each is named once, with its rule where two runs agree and its rule of moved axes.

    SOFTMAX = operators("softmax", "_softmax")

    @SOFTMAX.open
    def softmax(call: OpenOperation) -> OpenFact: ...

    @SOFTMAX.moved
    def moved_softmax(call: MovedOperation) -> MovedFact: ...

The modules below `theorems/operators` do so when they are imported, which happens when a rule is asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation, is_function
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation

ROOMS = "orderproof.theorems.operators"
POINTWISE = "<pointwise>"  # operators of which torch says that they are pointwise
OpenRule = Callable[[OpenOperation], OpenFacts]
MovedRule = Callable[[MovedOperation], MovedFacts]


@dataclass(eq=False)
class OperatorRules:
    """The rules of some operators, by name without namespace and overload. Without a rule, nothing is concluded."""

    names: tuple[str, ...]
    open_rule: OpenRule | None = None
    moved_rule: MovedRule | None = None

    def open(self, rule: OpenRule) -> OpenRule:
        """Register a function as the rule of the walk over values that agree in two runs."""
        if self.open_rule is not None:
            raise ValueError(f"{self.names[0]} has an open rule already")
        self.open_rule = rule
        return rule

    def moved(self, rule: MovedRule) -> MovedRule:
        """Register a function as the rule of the walk over tensors that move with the tokens."""
        if self.moved_rule is not None:
            raise ValueError(f"{self.names[0]} has a moved rule already")
        self.moved_rule = rule
        return rule


TABLE: dict[str, OperatorRules] = {}


def operators(*names: str) -> OperatorRules:
    """An entry of the table for operators with the same rules."""
    rules = OperatorRules(names)
    for name in names:
        if TABLE.setdefault(name, rules) is not rules:
            raise ValueError(f"{name} is in the table of operators already")
    return rules


@cache
def load_rooms() -> None:
    """Import every module of the rooms."""
    for module in pkgutil.walk_packages(importlib.import_module(ROOMS).__path__, f"{ROOMS}."):
        importlib.import_module(module.name)


def _rules_of(target: Any) -> OperatorRules | None:
    load_rooms()
    name = str(target)
    parts = name.split(".")
    if not name.startswith("aten.") or len(parts) < 2:
        return TABLE.get(name)
    found = TABLE.get(parts[1])
    return TABLE[POINTWISE] if found is None and torch.Tag.pointwise in getattr(target, "tags", ()) else found


def find_open_rule(target: Any) -> OpenRule | None:
    """The open rule of an operator; that of pointwise operators, if torch says it is one."""
    rules = _rules_of(target)
    return None if rules is None else rules.open_rule


def find_moved_rule(target: Any) -> MovedRule | None:
    """The moved rule of an operator; that of pointwise operators, if torch says it is one without chance."""
    rules = _rules_of(target)
    return None if rules is None or (rules is TABLE[POINTWISE] and not is_function(target)) else rules.moved_rule
