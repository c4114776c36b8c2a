"""The JSON schemas of a report, of a run of claims and of a study."""

from __future__ import annotations

from typing import Any

from orderproof.records.audit import SCHEMA_VERSION, Report
from orderproof.records.document import Document


def audit_schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) that every report written by this package satisfies."""
    return _schema(Report, SCHEMA_VERSION)


def claims_schema() -> dict[str, Any]:
    """The schema that every record written by `orderproof claims --json` satisfies."""
    from orderproof.records import claims

    return _schema(claims.ClaimsReport, claims.SCHEMA_VERSION)


def study_schema() -> dict[str, Any]:
    """The schema that every study written by `orderproof compare --json` satisfies."""
    from orderproof.records import study

    return _schema(study.Study, study.SCHEMA_VERSION)


def _schema(record: type[Document], version: int) -> dict[str, Any]:
    described = record.model_json_schema(by_alias=True, mode="serialization")
    described["properties"]["schema"]["const"] = version
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
