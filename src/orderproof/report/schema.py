"""The JSON schemas of a report, of a run of claims and of a study, version 1."""

from __future__ import annotations

from typing import Any

from orderproof import claim_record, study_record
from orderproof.record import SCHEMA, Record, Report


def schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) that every report written by this package satisfies."""
    return _schema(Report, SCHEMA)


def claims_schema() -> dict[str, Any]:
    """The schema that every record written by `orderproof claims --json` satisfies."""
    return _schema(claim_record.ClaimsRecord, claim_record.SCHEMA)


def study_schema() -> dict[str, Any]:
    """The schema that every study written by `orderproof compare --json` satisfies."""
    return _schema(study_record.Study, study_record.SCHEMA)


def _schema(record: type[Record], version: int) -> dict[str, Any]:
    described = record.model_json_schema(by_alias=True, mode="serialization")
    described["properties"]["schema"]["const"] = version
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
