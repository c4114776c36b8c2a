"""The differences of an atlas of ports, grouped: one group for each engine, configuration and set of causes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.variants import PLAIN
from orderproof.records.audit import PortCause
from orderproof.tolerances import PORT_FACTOR

Status = Literal["configuration of another version", "difference of the port"]
LONG_LAWS = ("same_past_context", "same_past_window", "same_prefill", "same_cached_decoding", "same_padded_batch")


@dataclass
class DifferenceGroup:
    """The rows of one engine and configuration that have one cause."""

    engine: str
    variant: str
    cause: PortCause | None  # None: no setting was found that explains the difference
    status: Status
    rows: list[tuple[PortRow, PortLawResult]] = field(default_factory=list)
    partly: set[str] = field(default_factory=set)  # names whose difference has a part that is not explained
    alone: set[str] = field(default_factory=set)  # names whose difference has no other cause

    @property
    def names(self) -> list[str]:
        """The architectures, in alphabetical order."""
        return sorted({row.name for row, _ in self.rows})

    @property
    def clearest(self) -> list[tuple[PortRow, PortLawResult]]:
        """The rows without another cause, if there are any."""
        return [each for each in self.rows if each[0].name in self.alone] or self.rows

    @property
    def script(self) -> str:
        """The name of the script that reproduces it."""
        what = "unexplained"
        if self.cause is not None:
            what = f"{self.cause.setting.rpartition('.')[2]} {_plain(self.cause.assumed)}"
        key = "key" if self.status == "configuration of another version" else ""
        parts = [self.engine, *([] if self.variant == PLAIN else [self.variant]), what, key]
        return re.sub(r"\W+", "_", " ".join(part for part in parts if part)).strip("_").lower() + ".py"


def difference_groups(rows: Iterable[PortRow]) -> list[DifferenceGroup]:
    """All groups: for each engine the plain configuration first, and the larger groups first.

    A row with several causes is in several groups: keys of older versions remove some of them, and not the others.
    Causes that an architecture has in its plain configuration are not repeated for its scalings.
    """
    groups: dict[tuple[object, ...], DifferenceGroup] = {}
    listed = list(rows)
    plain = {
        (row.engine, row.name, cause.setting, _plain(cause.assumed))
        for row in listed if row.variant == PLAIN
        for law in row.differences for cause in law.causes
    }  # fmt: skip
    for row in listed:
        law = _telling_law(row)
        parts = [] if law is None else _parts(law)
        for status, causes, explained in parts:
            for cause in causes or (None,):
                what = None if cause is None else (cause.setting, _plain(cause.assumed))
                if what is not None and row.variant != PLAIN and (row.engine, row.name, *what) in plain:
                    continue
                key = (row.engine, row.variant, status, what)
                group = groups.setdefault(key, DifferenceGroup(row.engine, row.variant, cause, status))
                assert law is not None
                group.rows.append((row, law))
                if not explained and cause is not None:
                    group.partly.add(row.name)
                if len(parts) == len(causes or (None,)) == 1:
                    group.alone.add(row.name)
    return sorted(groups.values(), key=lambda each: (each.engine, each.variant != PLAIN, -len(each.rows), each.script))


def _telling_law(row: PortRow) -> PortLawResult | None:
    """The difference of the longest prompt: every cause acts on it."""
    found = {law.law: law for law in row.differences}
    return next((found[name] for name in LONG_LAWS if name in found), next(iter(found.values()), None))


def _parts(law: PortLawResult) -> list[tuple[Status, tuple[PortCause, ...], bool]]:
    """The causes of a difference, those first that keys of older versions remove."""
    if law.with_older_keys is None or law.rounding is None:
        return [("difference of the port", law.causes, law.explained)]
    if law.with_older_keys <= PORT_FACTOR * law.rounding:
        return [("configuration of another version", law.causes, law.explained)]
    left = {(each.setting, each.assumed) for each in law.older_causes}
    removed = tuple(each for each in law.causes if (each.setting, each.assumed) not in left)
    own: tuple[Status, tuple[PortCause, ...], bool] = ("difference of the port", law.older_causes, law.older_explained)
    return [("configuration of another version", removed, law.explained), own] if removed else [own]


def _plain(assumed: str) -> str:
    """The value without its number: defaults of engines differ among architectures."""
    return "its own default" if assumed.endswith("its own default") else assumed
