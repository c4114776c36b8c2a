"""What every document has: a schema version, JSON that reads back, and an HTML renderer if one is registered."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from orderproof.records import audit, claims, sensitivity, study
from orderproof.records.document import Document, Record, Renderer, register_renderer, schema_version, versions

SUBJECT = audit.SubjectRecord(name="toy", kind="encoder", parameters=3)
EMPTY: list[tuple[Document, int]] = [
    (audit.Report(orderproof_version="0", subject=SUBJECT, findings=()), 2),
    (claims.ClaimsReport(orderproof="0", claims=()), claims.SCHEMA_VERSION),
    (
        study.Study(
            orderproof="0", name="s", question="q", statement="t", measure="accuracy", cells=(), trained_lengths=(1, 2)
        ),
        study.SCHEMA_VERSION,
    ),
    (
        sensitivity.WordOrderSensitivity(
            orderproof="0",
            subject=SUBJECT,
            source="s",
            sentences=0,
            pooling="mean",
            pooling_source="p",
            seed=0,
            effects=(),
            layers=(),
            examples=(),
            without_positions=sensitivity.WithoutPositions(),
        ),
        sensitivity.SCHEMA_VERSION,
    ),
]


@pytest.mark.parametrize(("document", "version"), EMPTY, ids=lambda each: type(each).__name__)
def test_a_document_names_its_schema_version_and_reads_back(document: Document, version: int) -> None:
    text = document.to_json()
    assert json.loads(text)["schema"] == document.schema_version == version > 0
    assert type(document).from_json(text) == document


def test_a_copy_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Scope has no field lenght"):
        audit.Scope(length=4).model_copy(update={"lenght": 5})


def test_a_notebook_shows_a_document_if_a_renderer_is_registered() -> None:
    class Note(Document):
        schema_version: int = schema_version(7)
        text: str

    assert Note(text="x")._repr_html_() is None
    register_renderer(Note, Renderer(lambda n: f"{n.text}\n", lambda n: n.text, lambda n: f"<p>{n.text}</p>"))
    note = Note(text="x")
    assert (str(note), repr(note), note._repr_html_()) == ("x\n", "<Note x>", "<p>x</p>")
    assert not issubclass(audit.Finding, Document)
    assert issubclass(audit.Finding, Record)


@pytest.mark.parametrize("importing", ["from orderproof import Report", "from orderproof.auditing import audit"])
def test_the_ways_to_a_report_register_its_renderer(importing: str) -> None:
    check = (
        "from orderproof.records import audit, document; assert {audit.Report, audit.Finding} <= {*document._renderers}"
    )
    assert subprocess.run([sys.executable, "-c", f"{importing}; {check}"], check=False).returncode == 0


def test_versions_are_those_of_loaded_libraries() -> None:
    found = versions()
    assert {"python", "orderproof"} <= set(found)
    assert ("torch" in found) == ("torch" in sys.modules)
