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
    """Rows of one engine with the same causes."""

    engine: str
    variant: str
    causes: tuple[PortCause, ...]
    explained: bool
    status: Status
    rows: list[tuple[PortRow, PortLawResult]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The architectures, in alphabetical order."""
        return sorted({row.name for row, _ in self.rows})

    @property
    def script(self) -> str:
        """The name of the script that reproduces it."""
        settings = [each.setting.rpartition(".")[2].replace("*", "").replace(" ", "_") for each in self.causes]
        parts = [self.engine, *([] if self.variant == PLAIN else [self.variant]), *(settings or ["unexplained"])]
        kept = "" if self.status == "difference of the port" else "_key"
        return re.sub(r"\W+", "_", "_".join(parts)).lower() + f"{kept}.py"


def difference_groups(rows: Iterable[PortRow]) -> list[DifferenceGroup]:
    """All groups, the larger first within an engine.

    A row with causes that keys of older versions remove and with others that they do not is in two groups.
    """
    groups: dict[tuple[object, ...], DifferenceGroup] = {}
    for row in rows:
        law = _telling_law(row)
        if law is None:
            continue
        for status, causes, explained in _parts(law):
            key = (row.engine, row.variant, status, explained, tuple((c.setting, _plain(c.assumed)) for c in causes))
            group = groups.setdefault(key, DifferenceGroup(row.engine, row.variant, causes, explained, status))
            group.rows.append((row, law))
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
