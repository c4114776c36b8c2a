"""The JSON schema of a report, version 1."""

from __future__ import annotations

from typing import Any

from orderproof.record import SCHEMA, Report


def schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) that every report written by this package satisfies."""
    described = Report.model_json_schema(by_alias=True, mode="serialization")
    described["properties"]["schema"]["const"] = SCHEMA
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
