"""The laws: the fields of `LAW` in each file of the folders of `laws`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from orderproof.catalogue.source import read_module, read_modules
from orderproof.records.audit import Expectation, Kind
from orderproof.registry import lookup_by_code

PORTS = "orderproof.laws.ports"
PROVED = "orderproof.laws.proved"
TRAINING = "orderproof.laws.training"
FOLDERS = (PROVED, "orderproof.laws.measured", PORTS, TRAINING)


class LawEntry(NamedTuple):
    """The fields of a `Law` by which it is listed and chosen."""

    code: str
    name: str
    statement: str
    trait: str
    kind: Kind
    expectation: Mapping[str, Expectation]
    trait_if: Literal["holds", "fails"]


def laws() -> tuple[LawEntry, ...]:
    """The proved laws, the measured ones, those of ports and of training steps, each in the order of their codes."""
    return _laws(tuple(module.file for folder in FOLDERS for module in read_modules(folder)))


@cache
def _laws(_files: tuple[Path, ...]) -> tuple[LawEntry, ...]:
    defaults = read_module("orderproof.laws.law").class_attributes("Law")
    return tuple(entry for folder in FOLDERS for entry in sorted(_entries(folder, defaults)))


def proved_laws() -> tuple[LawEntry, ...]:
    """The laws that are proved on a graph."""
    return _laws_of(PROVED)


def find_law(name: str) -> LawEntry:
    """The law with this name or code. Raises `UsageError`."""
    return lookup_by_code(name, laws(), "a law")


def find_training_law(name: str) -> LawEntry:
    """The law of training steps with this name or code. Raises `UsageError`."""
    return lookup_by_code(name, _laws_of(TRAINING), "a law of training steps")


def compares_engines(entry: LawEntry) -> bool:
    """True for a law of ports, which needs an engine."""
    return entry in _laws_of(PORTS)


def needs_training_step(entry: LawEntry) -> bool:
    """True for a law of training steps, which needs a batch and a loss."""
    return entry in _laws_of(TRAINING)


def _laws_of(folder: str) -> tuple[LawEntry, ...]:
    return tuple(sorted(_entries(folder, read_module("orderproof.laws.law").class_attributes("Law"))))


def _entries(folder: str, defaults: Mapping[str, Any]) -> Iterator[LawEntry]:
    for module in read_modules(folder):
        if (given := module.keywords("LAW")) is not None:
            stated = {name: module.value(given[name]) for name in LawEntry._fields if name in given}
            yield LawEntry(**{name: value for name, value in defaults.items() if name in LawEntry._fields} | stated)
