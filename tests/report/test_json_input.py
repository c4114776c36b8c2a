"""A report read back from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.errors import UsageError
from orderproof.report import json_input
from orderproof.report.json_input import read_report
from tests.report import examples


def test_a_report_that_is_none_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "report.json"
    for text, match in (
        ("{", "expected a report as JSON"),
        ("[" * 100_000, "expected a report as JSON"),
        ('{"schema": 1}', "schema version 2, got 1; audit again"),
        ("[]", "expected a report as JSON, .* got list"),
        ("{}", "schema version 2, got none; audit again"),
        ('{"schema": 2}', "not a report of schema version 2: orderproof_version: Field required"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=match):
            read_report(file)
    monkeypatch.setattr(json_input, "MAX_FILE_BYTES", 10)
    with pytest.raises(UsageError, match="expected a report of at most 0 MB"):
        read_report(file)
    monkeypatch.undo()
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="JSON in UTF-8"):
        read_report(file)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_report(tmp_path / "none.json")
    file.write_text(examples.everyday().to_json(), encoding="utf-8")
    assert read_report(file) == examples.everyday()
    file.write_text(examples.everyday().to_json(), encoding="utf-8-sig")
    assert read_report(file) == examples.everyday()
