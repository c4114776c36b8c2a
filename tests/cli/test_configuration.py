"""Subjects of a configuration: all of them, one by name, and what a file states wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orderproof.cli import project_run
from orderproof.cli.audit import audit
from orderproof.cli.project_report import Audited
from orderproof.cli.stated_options import options_of
from tests.cli.conftest import Run
from tests.cli.test_gate import MODEL

CONFIGURATION = """\
seed = 3
law = ["causal"]

[subjects.right]
subject = "model.py:good"

[subjects.wrong]
subject = "model.py:bad"
as = "decoder"

[subjects.gone]
subject = "absent.py:build"
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "orderproof.toml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)


def test_all_subjects_are_audited_and_the_worst_decides(run: Run, tmp_path: Path) -> None:
    code, out, err = run("audit", "--json", "all.json", "--sarif", "all.sarif")
    assert (code, err) == (1, "")
    assert out.count("FAIL OP201 causal") == 1  # the report of the subject that does not pass
    lines = [line for line in out.splitlines() if "exit code" in line]
    assert lines[-4:] == [
        "right  exit code 0: every check passed",
        "wrong  exit code 1: OP201 causal FAIL: expected to hold, it does not hold (witness)",
        "gone   exit code 2: absent.py:build: no file absent.py",
        "exit code 1: 3 subjects, 1 without a failed check",
    ]
    report = json.loads((tmp_path / "all.json").read_text())
    assert [f["output"] for f in report["findings"]] == ["right, output", "wrong, output"]
    assert "gone: no report: absent.py:build: no file absent.py" in report["notes"]
    (result,) = json.loads((tmp_path / "all.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "model.py"


def test_one_subject_is_audited_by_its_name_from_any_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "inner")
    code, out, _ = run("audit", "wrong", "--expect", "causal=any", "--json", "one.json")
    assert (code, out.splitlines()[0]) == (0, "wrong")
    report = json.loads(Path("one.json").read_text())
    assert [(f["law"], f["witness"]["seed"]) for f in report["findings"]] == [("causal", 3)]
    assert Path.cwd() == tmp_path / "inner"
    assert run("prove", "right", "--law", "causal", "-q")[0] == 0
    assert "OP204  batch" in run("prove", "right").err  # the law of the file is that of an audit
    code, _, err = run("audit", "wrnog")
    assert code == 2
    assert err.endswith("wrnog: no subject of the configuration, and no such folder; did you mean 'wrong'?\n")


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("lenght = 5", "orderproof.toml:13: unknown key 'lenght' of subject 'gone'; did you mean 'length'?"),
        ('kind = "encoder"', "orderproof.toml:13: unknown key 'kind' of subject 'gone'; did you mean 'as'?"),
        ('length = "5"', "orderproof.toml:13: expected length to be a whole number; got '5'"),
        ("tiny = 1", "orderproof.toml:13: expected tiny to be true or false; got 1"),
        ("law = [1.5]", "orderproof.toml:13: expected law to be a text or an array of them; got [1.5]"),
        ('law = "causl"', "orderproof.toml:13: expected a law; got 'causl'; did you mean 'causal'?"),
        ('as = "decodr"', "orderproof.toml:13: expected kind to be decoder or encoder; got 'decodr'"),
        ('attention = "flash"', "orderproof.toml:13: expected attention to be sdpa or eager; got 'flash'"),
        (
            "expect = {causal = true}",
            "orderproof.toml:13: expected expect to be a text or an array of them, or a table",
        ),
        ('role = {keep = "msk"}', "orderproof.toml:13: expected a role, one of mask,"),
        ("timeout = 0", "orderproof.toml:13: expected timeout of at least 0.001; got 0"),
        ("timeout = nan", "orderproof.toml:13: expected timeout of at least 0.001; got nan"),
        ('json = "-"', "orderproof.toml:13: expected json to be a file; '-' is for the command line"),
        ('json = "a"\nhtml = "a"', "orderproof.toml:13: html of 'gone' is 'a' too; name another file"),
        ("quiet = true", "orderproof.toml:13: 'quiet' is an option of the command line only; leave it out"),
        ("jobs = 2", "orderproof.toml:13: 'jobs' is of all subjects together; state it above them"),
        ("[subjects.gone]", "orderproof.toml:13: subjects.gone is there twice; keep one"),
    ],
)
def test_what_a_file_states_wrongly_is_one_line(run: Run, tmp_path: Path, added: str, message: str) -> None:
    (tmp_path / "orderproof.toml").write_text(f"{CONFIGURATION}{added}\n")
    code, out, err = run("audit")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"orderproof: {message}")


def test_keys_are_the_long_options_of_the_command_line(run: Run) -> None:
    code, out, _ = run("audit", "--help")
    assert code == 0
    assert {f"--{key}" for key in options_of(audit)} <= set(out.replace(",", " ").split())
    assert options_of(audit).keys() >= {"as", "mode", "role", "expect", "law", "seed", "length", "timeout", "jobs"}


def test_a_proof_leaves_the_files_of_the_audit_as_they_are(run: Run, tmp_path: Path) -> None:
    named = CONFIGURATION.replace('"model.py:good"', '"model.py:good"\njson = "right.json"')
    (tmp_path / "orderproof.toml").write_text(named)
    (tmp_path / "right.json").write_text("{}")
    code, _, err = run("prove", "right", "--law", "causal")
    assert (code, err) == (0, "")
    assert (tmp_path / "right.json").read_text() == "{}"


def test_a_folder_without_a_configuration_has_no_named_subjects(run: Run, tmp_path: Path) -> None:
    (tmp_path / "orderproof.toml").unlink()
    assert run("audit", "wrong")[0] == 2


def test_subjects_are_audited_in_processes_of_their_own(tmp_path: Path) -> None:
    names = "".join(f'[subjects.s{k}]\nsubject = "absent{k}.py:build"\n' for k in range(3))
    (tmp_path / "orderproof.toml").write_text(f"jobs = 2\n{names}")
    command = [sys.executable, "-m", "orderproof", "audit"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 2
    assert [line for line in done.stdout.splitlines() if line] == [
        *(f"s{k}  exit code 2: absent{k}.py:build: no file absent{k}.py" for k in range(3)),
        "exit code 2: 3 subjects, 0 without a failed check",
    ]
    assert "auditing s0, s1" in done.stderr


def test_an_unchanged_subject_is_answered_from_what_is_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    code, first, _ = run("audit", "right", "--law", "stateless")
    assert (code, "unchanged" in first) == (0, False)
    monkeypatch.setattr("orderproof.cli.audit_run.load_subject", None)  # nothing is loaded
    code, out, _ = run("audit", "right", "--law", "stateless", "--json", "again.json")
    line, _, rest = out.partition("\n")
    assert (code, line.startswith("unchanged since 20"), rest) == (0, True, f"{first}written: again.json\n")
    all_of_them = run("audit", "--law", "stateless", "--strict").out
    assert "right  exit code 0: every check passed; unchanged since 20" in all_of_them
    (tmp_path / "model.py").write_text(MODEL.replace("Decoder(0)", "Decoder(3)"))
    assert "internal error" in run("audit", "right", "--law", "stateless").err  # it would be loaded again


def test_no_cache_audits_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("audit", "right", "--law", "stateless", "-q").code == 0
    assert "unchanged" in run("audit", "right", "--law", "stateless").out
    monkeypatch.setattr("orderproof.cli.audit_run.load_subject", None)
    assert "internal error" in run("audit", "right", "--law", "stateless", "--no-cache").err


def test_a_baseline_accepts_what_it_names_and_nothing_stale(run: Run, tmp_path: Path) -> None:
    stated = CONFIGURATION.replace('subject = "absent.py:build"', 'subject = "m.py:f"')
    (tmp_path / "orderproof.toml").write_text(f'baseline = "inner/base.toml"\n{stated}')  # stated first, then written
    missing = "inner/base.toml: expected a baseline; no such file; orderproof audit --write-baseline inner/base.toml"
    assert missing in run("audit").err
    assert run("audit", "--write-baseline", "inner/base.toml").code == 1
    base = tmp_path / "inner" / "base.toml"
    assert base.read_text().count("[[accepted]]") == 1
    code, _, err = run("audit", "wrong", "--baseline", "inner/base.toml")
    assert (code, "inner/base.toml:10: expected a reason" in err) == (2, True)
    base.write_text(base.read_text().replace('reason = ""', 'reason = "known"'))
    code, out, err = run("audit", "wrong", "--baseline", "inner/base.toml", "--sarif", "order.sarif")
    assert (code, err, "is accepted until" in out) == (0, "", True)
    assert json.loads(Path("order.sarif").read_text())["runs"][0]["results"] == []
    done = run("audit")
    assert (done.code, "wrong  exit code 0" in done.out) == (2, True)  # a subject is missing
    assert "; 1 finding accepted by the baseline; unchanged since" in done.out
    assert "no subject is named" not in done.err
    base.write_text(base.read_text().replace('subject = "wrong"', 'subject = "wrnog"'))
    assert "base.toml:4: no subject is named 'wrnog'; did you mean 'wrong'?" in run("audit").err
    base.write_text(base.read_text().replace('subject = "wrnog"', 'subject = "wrong"'))
    code, _, err = run("audit", "wrong", "--expect", "causal=fails")
    assert (code, "base.toml:4: stale: no such finding of OP201 causal of wrong; delete the entry" in err) == (2, True)
    assert err.endswith("orderproof: exit code 2: every check passed, and the baseline has entries to delete\n")


def test_fast_leaves_out_what_is_measured(run: Run) -> None:
    code, out, _ = run("audit", "right", "--fast", "--law", "causal", "--law", "stateless", "--json", "fast.json")
    assert (code, "fast: measured laws were left out" in " ".join(out.split())) == (0, True)
    (finding,) = json.loads(Path("fast.json").read_text())["findings"]
    assert (finding["law"], finding["verdict"]) == ("causal", "proved")
    code, _, err = run("audit", "right", "--fast", "--law", "stateless")
    assert (code, "expected a law that is proved with fast; got stateless, measured" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[subject.decoder]\nsubject = "model.py:good"\n', "1: unknown key 'subject'; did you mean 'subjects'?"),
        ("timeot = 3\n", "1: unknown key 'timeot'; did you mean 'timeout'?"),
        ("timeout = 3\n", '1: expected a table [subjects.NAME] with subject = "..."; got none'),
    ],
)
def test_a_configuration_without_subjects_is_refused(run: Run, text: str, expected: str) -> None:
    Path("orderproof.toml").write_text(text)
    assert run("audit", "--quiet") == (2, "", f"orderproof: orderproof.toml:{expected}\n")
    assert run("audit", "model.py:good", "--law", "causal", "--quiet")[0] == 0


def test_an_interruption_ends_all_subjects_where_none_can_be_forked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def interrupted(command: project_run._Command) -> Audited:
        begun.append(command.name)
        return Audited(command.name, 130)

    monkeypatch.setattr(project_run._Command, "run_here", interrupted)
    code, out, _ = run("audit")
    assert (code, begun) == (130, ["right"])
    assert "interrupted" in out
