"""The state of the check of one recording with permuted tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orderproof_recheck.permuted.moved_fact import MovedFact
from orderproof_recheck.reading import Facts
from orderproof_recheck.setting import Setting

MovedFacts = MovedFact | list[MovedFact]


@dataclass(frozen=True)
class Entry:
    """A step at which order is taken out of the graph."""

    constants: frozenset[str]
    causal: bool


@dataclass
class MovedRecording:
    """The facts of a recording that was checked."""

    data: dict[str, Any]
    setting: Setting
    roles: dict[str, str]
    entries: dict[str, Entry]
    everywhere: frozenset[str]
    facts: dict[str, MovedFacts] = field(default_factory=dict)
    from_inputs: set[str] = field(default_factory=set)  # nodes that depend on an input
    stored: dict[str, Facts] = field(default_factory=dict)  # facts with values, about what constants are made of
    premises: list[str] = field(default_factory=list)  # what is stored
