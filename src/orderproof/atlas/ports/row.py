"""A row of the atlas of ports: one architecture, one configuration of it, one engine."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

from pydantic import Field

from orderproof._version import __version__
from orderproof.atlas.row import one_line
from orderproof.records.audit import Finding, PortCause, Verdict
from orderproof.records.document import Record

SCHEMA_VERSION: Literal[1] = 1


class PortLawResult(Record):
    """One law."""

    law: str
    verdict: Verdict
    difference: float | None = None  # relative; None if nothing was compared
    rounding: float | None = None  # of the reference
    first_token: int | None = None
    tokens: int = 0
    causes: tuple[PortCause, ...] = ()
    explained: bool = False
    with_older_keys: float | None = None
    older_causes: tuple[PortCause, ...] = ()
    older_explained: bool = False
    reason: str = ""


class PortRow(Record):
    """One architecture in one configuration, read by one engine."""

    ports: int = SCHEMA_VERSION
    name: str
    variant: str  # "default", or the rope scaling
    engine: str
    engine_version: str
    transformers: str
    orderproof: str = __version__
    known: bool = True  # the engine has an implementation
    window: int | None = None  # [tokens]
    context: int | None = None  # [tokens]
    model_type: str = ""  # of the configuration
    values: dict[str, Any] = Field(default_factory=dict)  # of the configuration that differ from its default
    older_keys: tuple[str, ...] = ()
    needs_older_keys: bool = False  # refused without them
    laws: tuple[PortLawResult, ...] = ()
    failure: str = ""  # why there is no comparison
    processor_seconds: float = 0.0
    engine_seconds: float = 0.0  # of processor time of the engine for the checkpoint and all calls
    import_seconds: float = 0.0  # of the import before, in an environment of its own
    finished_on: str = ""  # date, UTC

    @property
    def key(self) -> tuple[str, ...]:
        """Names and versions: a run with the same key reuses the row."""
        return (self.name, self.variant, self.engine, self.engine_version, self.transformers, self.orderproof)

    def to_json(self) -> str:
        """One line of JSON without default values."""
        return self.model_dump_json(exclude_defaults=True)

    def to_line(self) -> str:
        """The JSON with the schema version, for the store."""
        return f'{{"ports":{self.ports},{self.to_json()[1:]}'

    @property
    def differences(self) -> tuple[PortLawResult, ...]:
        """The laws of calls that fail by a difference, or by other tokens with known causes."""
        failed = (law for law in self.laws if law.verdict == "refuted" and law.law != "loads_checkpoint")
        return tuple(law for law in failed if law.difference is not None or law.causes)

    @property
    def is_compared(self) -> bool:
        """True if the engine has the architecture and loads its checkpoint, with keys of older versions or without."""
        loaded = self.law("loads_checkpoint")
        is_loaded = loaded is None or loaded.verdict == "held" or self.needs_older_keys
        return self.known and not self.failure and is_loaded

    def law(self, name: str) -> PortLawResult | None:
        """The result of a law by name."""
        return next((law for law in self.laws if law.law == name), None)


def law_result(finding: Finding) -> PortLawResult:
    """The part of a finding that a row keeps."""
    port = finding.port
    return PortLawResult(
        law=finding.law, verdict=finding.verdict, difference=finding.deviation.float32,
        rounding=None if port is None else port.rounding, first_token=None if port is None else port.first_token,
        tokens=0 if port is None else port.tokens, causes=() if port is None else port.causes,
        explained=port is not None and port.explained,
        with_older_keys=None if port is None else port.with_older_keys,
        older_causes=() if port is None else port.older_causes,
        older_explained=port is not None and port.older_explained,
        reason=one_line(finding.reason) if finding.verdict in ("refuted", "undecided") else "",
    )  # fmt: skip


def today() -> str:
    """The date, UTC."""
    return dt.datetime.now(dt.UTC).date().isoformat()
