"""The interface of a cause: candidates, each one change of the reference that may reproduce the engine.

A cause is one file of this folder that defines `CAUSE`. A difference has a cause if a candidate, or several together,
make the reference equal to the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orderproof.laws.ports.port_law import CallKind
from orderproof.ports.reference import Change, Reference
from orderproof.records.audit import PortCauseName

Defaults = Mapping[str, Any]  # the values that the engine takes for keys that config.json lacks


@dataclass(frozen=True)
class Candidate:
    """One change of the reference, in words."""

    cause: PortCauseName
    setting: str  # the key of the configuration, or the part of the program
    stated: str  # the value of the reference
    assumed: str  # the value that the port seems to have
    change: Change
    kind: CallKind | None = None  # the calls that it can change, if not all
    likely: bool = False  # a key that is not read: tried together with others
    remedy: str = ""  # if not that of all its kind
    rounds: bool = False  # values next to a boundary of its rounding are rounded up by one program, and down by another


@dataclass(frozen=True)
class Cause:
    """A kind of difference."""

    name: PortCauseName
    order: int  # candidates of a lower number are tried first
    candidates: Callable[[Reference, Defaults], Iterator[Candidate]]


def with_values(values: Mapping[str, Any]) -> Change:
    """The change that sets values of a configuration."""

    def configure(config: Any) -> Any:
        changed = copy.deepcopy(config)
        for key, value in values.items():
            setattr(changed, key, value)
        return changed

    return Change(configure=configure)


def with_read_values(values: Mapping[str, Any]) -> Change:
    """The change of a program that reads these values from config.json, with what follows from them."""

    def configure(config: Any) -> Any:
        return type(config).from_dict({**config.to_dict(), **values})

    return Change(configure=configure)


def ropes(config: Any) -> dict[str, dict[str, Any]]:
    """The rope parameters of a configuration: by layer type, or under "" if all layers have the same."""
    rope = getattr(config, "rope_parameters", None)
    if not isinstance(rope, dict):
        return {}
    nested = {key: value for key, value in rope.items() if isinstance(value, dict)}
    return nested or {"": rope}


def with_rope(edit: Callable[[dict[str, Any]], dict[str, Any]], only: str | None = None) -> Change:
    """The change that edits the rope parameters of one layer type, or of all."""

    def configure(config: Any) -> Any:
        changed = copy.deepcopy(config)
        edited = {
            key: edit(dict(rope)) if only in (None, key) else rope for key, rope in ropes(changed).items()
        }  # fmt: skip
        changed.rope_parameters = edited.get("", {**changed.rope_parameters, **edited})
        return changed

    return Change(configure=configure)
