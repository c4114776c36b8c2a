"""Accepted findings: what an entry accepts, what a file says wrongly, and what has had its time."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from orderproof.configuration.baseline import Baseline, baseline_text, read_baseline
from orderproof.errors import UsageError
from orderproof.records.audit import Finding, Report, Scope, SubjectRecord

TODAY = date(2026, 11, 29)


def report(**of_finding: object) -> Report:
    """A report of a law that fails at a line, and of one that passes."""
    failed = Finding(
        code="OP202", law="padding", verdict="refuted", outcome="fail", expected="holds", expectation_met=False,
        scope=Scope(length=7), output="output", call_mode="padded", fix_source="model.py:7", fix_line='x = "a"  + y',
    ).model_copy(update=of_finding)  # fmt: skip
    passed = Finding(
        code="OP201", law="causal", verdict="proved", outcome="pass", expected="holds", scope=Scope(length=7)
    )
    subject = SubjectRecord(name="decoder", kind="module", parameters=1)
    return Report(orderproof_version="0", subject=subject, findings=(failed, passed))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A baseline of the failed finding, with a reason."""
    monkeypatch.chdir(tmp_path)
    text = baseline_text([report()], None, today=TODAY)
    Path("base.toml").write_text(text.replace('reason = ""', 'reason = "pads are cut off"'))
    return Path("base.toml")


def read(file: Path, today: date = TODAY) -> Baseline:
    return read_baseline(file, today=today)


def test_an_accepted_finding_describes_the_model_and_is_noted(file: Path) -> None:
    found = read(file)
    accepted = found.accept(report())
    assert (report().exit_code, accepted.exit_code, found.problems()) == (1, 0, [])
    assert [(f.kind, f.outcome, f.expected) for f in accepted.findings[:1]] == [("property", "no", "any")]
    assert accepted.notes == ("OP202 padding is accepted until 2027-02-27 (base.toml:4): pads are cut off",)


@pytest.mark.parametrize(
    "change",
    [{"fix_line": "z = 3"}, {"output": "other"}, {"verdict": "undecided"}, {"call_mode": "padded left"},
     {"code": "OP204", "law": "batch"}],
)  # fmt: skip
def test_another_finding_is_not_accepted(file: Path, change: dict[str, str]) -> None:
    found = read(file)
    assert found.accept(report(**change)).exit_code in (1, 3)
    wanted = [] if "code" in change else ["base.toml:4: stale: no such finding of OP202 padding of decoder; delete the"]
    assert [line[: len(wanted[0])] for line in found.problems()] == wanted


def test_the_number_of_a_line_may_change(file: Path) -> None:
    assert read(file).accept(report(fix_source="model.py:90", fix_line='  x = "a" + y')).exit_code == 0


def test_an_expired_entry_accepts_nothing_and_is_named(file: Path) -> None:
    found = read(file, date(2027, 2, 28))
    assert found.accept(report()).exit_code == 1
    (line,) = found.problems()
    assert line == "base.toml:4: expired on 2027-02-27: OP202 padding of decoder; repair it, or state why not yet"
    assert read(file, date(2027, 2, 27)).accept(report()).exit_code == 0


def test_a_finding_that_is_gone_leaves_a_stale_entry(file: Path) -> None:
    found = read(file)
    found.accept(report(verdict="proved", expectation_met=True))
    assert found.problems() == ["base.toml:4: stale: no such finding of OP202 padding of decoder; delete the entry"]
    assert read(file).problems() == []  # nothing was decided


def test_writing_again_keeps_reasons_and_drops_what_is_gone(file: Path) -> None:
    text = file.read_text()
    assert baseline_text([report()], read(file), today=date(2027, 1, 1)) == text
    gone = baseline_text([report(verdict="proved", expectation_met=True)], read(file), today=TODAY)
    assert "[[accepted]]" not in gone
    assert "pads are cut off" in baseline_text([], read(file), today=TODAY)
    other = baseline_text([report(output="other")], read(file), today=TODAY)
    assert ('reason = ""' in other, "pads are cut off" in other) == (True, False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('reason = "pads are cut off"', 'reason = ""', "base.toml:11: expected a reason why the finding is accepted"),
        ("expires = 2027-02-27", 'expires = "soon"', "base.toml:12: expected expires to be a date as 2027-02-27"),
        ("expires = 2027-02-27", "", "base.toml:4: expected expires in an accepted finding; got none"),
        ("expires", "expirs", "base.toml:12: unknown key 'expirs'; did you mean 'expires'?"),
        ("OP202 padding", "OP999", "base.toml:6: expected a law"),
        ('verdict = "refuted"', "verdict = 3", "base.toml:9: expected verdict to be a text; got 3"),
        ("[[accepted]]", "[accepted]", "base.toml:4: expected tables [[accepted]]"),
        ("[[accepted]]", "[[acepted]]", "base.toml:4: unknown key 'acepted'; expected [[accepted]] only"),
    ],
)
def test_what_a_baseline_says_wrongly_is_one_line(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UsageError) as raised:
        read(file)
    assert str(raised.value).startswith(message)


def test_an_entry_twice_and_a_missing_file_are_refused(file: Path) -> None:
    entry = file.read_text().partition("[[accepted]]")[2]
    file.write_text(f"[[accepted]]{entry}\n[[accepted]]{entry}")
    with pytest.raises(UsageError, match="base.toml:11: OP202 padding of decoder is accepted twice; keep one"):
        read(file)
    with pytest.raises(
        UsageError,
        match="absent.toml: expected a baseline; no such file; orderproof audit --write-baseline absent.toml writes it",
    ):
        read(Path("absent.toml"))


def test_an_entry_of_no_subject_of_a_project_is_named(file: Path) -> None:
    found = read(file)
    assert found.problems() == found.problems(["decoder"]) == []  # its law was not decided in this run
    assert found.problems(["decoders", "layer"]) == [
        "base.toml:4: no subject is named 'decoder'; did you mean 'decoders'?"
    ]
