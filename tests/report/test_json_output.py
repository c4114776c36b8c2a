from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from orderproof.errors import UsageError
from orderproof.records.audit import Report
from orderproof.report import audit_schema, file_output, write_html, write_json
from tests.report import examples

REPORTS = {
    "everyday": examples.everyday,
    "causal": examples.causal_proof,
    "undecided": examples.undecided_only,
    "measured": examples.measured,
    "hostile": examples.hostile,
}


@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_the_file_satisfies_the_schema_and_reads_back_equal(make, tmp_path: Path):
    target = tmp_path / "report.json"
    write_json(make(), target)
    text = target.read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), audit_schema())
    assert Report.from_json(text) == make()


def test_the_schema_is_itself_a_schema_and_names_the_version():
    jsonschema.Draft202012Validator.check_schema(audit_schema())
    assert audit_schema()["properties"]["schema"]["const"] == 2


def test_the_schema_refuses_what_is_not_in_it():
    data = json.loads(examples.everyday().to_json())
    with pytest.raises(jsonschema.ValidationError, match="Additional properties"):
        jsonschema.validate({**data, "surprise": 1}, audit_schema())
    with pytest.raises(jsonschema.ValidationError, match="2 was expected"):
        jsonschema.validate({**data, "schema": 1}, audit_schema())


def test_a_dash_is_standard_output(capsys: pytest.CaptureFixture[str]):
    write_json(examples.everyday(), "-")
    assert Report.from_json(capsys.readouterr().out) == examples.everyday()


def test_a_dash_works_on_a_stream_without_bytes(monkeypatch: pytest.MonkeyPatch):
    import io

    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    file_output.write_file("text", "-")
    assert stream.getvalue() == "text"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "report.json"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_json(examples.everyday(), target)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_link_is_followed_not_replaced(tmp_path: Path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    write_json(examples.everyday(), link)
    assert link.is_symlink()
    assert Report.from_json(real.read_text(encoding="utf-8")) == examples.everyday()


def test_a_device_is_written_to_not_replaced():
    write_json(examples.everyday(), os.devnull)
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("write", [write_json, write_html])
def test_a_folder_that_is_missing_is_one_clear_line(write, tmp_path: Path):
    with pytest.raises(UsageError, match=r"cannot write .*No such file.*existing, writable folder"):
        write(examples.everyday(), tmp_path / "absent" / "report")


def test_a_folder_is_no_file(tmp_path: Path):
    with pytest.raises(UsageError, match="it is a folder"):
        write_json(examples.everyday(), tmp_path)


@pytest.mark.parametrize("target", ["absent/report.json", ".", ""])
def test_where_nothing_can_be_written_is_reported_before(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UsageError, match=r"cannot write .*; give a file name in an existing, writable folder"
    ) as before:
        file_output.check_writable(None, "-", "fine.json", os.devnull, target)
    with pytest.raises(UsageError) as after:
        file_output.write_file("text", target)
    assert str(before.value) == str(after.value)
    assert list(tmp_path.iterdir()) == []


def test_two_files_do_not_share_standard_output():
    with pytest.raises(UsageError, match=r"expected at most one output on standard output \(-\); got 2"):
        file_output.check_writable("-", None, "-")


def test_two_outputs_are_two_files(tmp_path: Path):
    with pytest.raises(UsageError, match=r"expected another file for each output; got '.*report\.json' twice"):
        file_output.check_writable(tmp_path / "report.json", None, tmp_path / "." / "report.json")
    file_output.check_writable(os.devnull, os.devnull)


def test_an_output_does_not_replace_its_subject(tmp_path: Path):
    model = tmp_path / "model.py"
    model.write_text("")
    for subject in (f"{model}:build", str(model)):
        with pytest.raises(UsageError, match=r"got '.*model\.py', which holds the subject"):
            file_output.check_writable(model, source=subject)
    file_output.check_writable(tmp_path / "report.json", source=f"{model}:build")


def test_a_read_only_folder_is_reported_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs the tests may be allowed everything
    with pytest.raises(UsageError, match=r"cannot write .*: Permission denied; give a file name"):
        file_output.check_writable(tmp_path / "report.json")
    file_output.check_writable(os.devnull)
