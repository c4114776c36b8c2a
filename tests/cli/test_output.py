"""The command line: what goes to which stream and into which file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from orderproof.report.schema import audit_schema
from tests.cli.conftest import Run

FILE = str(Path(__file__).parent.parent / "auditing" / "examples.py")
CAUSAL, BLIND = f"{FILE}:Causal", f"{FILE}:Attention"


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_json_alone_is_on_standard_output(run: Run, quiet: list[str]) -> None:
    done = run("audit", CAUSAL, "--law", "causal", "--json", "-", *quiet)
    data = json.loads(done.out)
    jsonschema.validate(data, audit_schema())
    assert data["findings"][0]["verdict"] == "proved"
    assert done.code == 0
    assert ("proved" in done.err) == (not quiet)


def test_quiet_prints_nothing(run: Run) -> None:
    done = run("prove", BLIND, "--law", "causal", "--expect", "causal=holds", "--quiet")
    assert (done.code, done.out, done.err) == (1, "", "")


def test_a_section_for_a_model_card_can_be_piped(run: Run) -> None:
    done = run("audit", CAUSAL, "--law", "causal", "--law", "stateless", "--markdown", "-")
    assert done.out.startswith("## Token order of ")
    assert re.search(r"^\| OP201 \| .* proved: for every length of at least 2", done.out, re.MULTILINE)
    assert re.search(r"^\| OP406 \| .* measured: \d+ comparisons?, no difference", done.out, re.MULTILINE)
    assert "exit code 0" in done.err


def test_files_are_written_and_named(run: Run, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"report.{name}" for name in ("json", "html", "markdown")}
    done = run("audit", BLIND, *[x for name, path in paths.items() for x in (f"--{name}", str(path))])
    assert done.code == 0
    assert "written:" in done.out
    jsonschema.validate(json.loads(paths["json"].read_text()), audit_schema())
    assert paths["html"].read_text().startswith("<!doctype html>")
    assert paths["markdown"].read_text().startswith("## Token order of ")


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_no_color_is_obeyed(run: Run, monkeypatch: pytest.MonkeyPatch, no_color: str | None, coloured: bool) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    done = run("prove", CAUSAL, "--law", "causal")
    assert bool(re.search(r"\x1b\[[\d;]*3[0-7]", done.out)) == coloured
    assert ("\x1b" in done.out) == coloured  # nor bold


def test_nothing_is_coloured_where_there_is_no_terminal(run: Run) -> None:
    assert "\x1b" not in run("prove", CAUSAL, "--law", "causal").out


@pytest.mark.filterwarnings("default")
def test_claims_are_printed_and_written(run: Run, tmp_path: Path) -> None:
    from orderproof.report import claims_schema

    path = tmp_path / "claims.md"
    done = run("claims", "3", "--json", "-", "--markdown", str(path))
    data = json.loads(done.out)
    jsonschema.validate(data, claims_schema())
    assert (done.code, data["kind"], [c["number"] for c in data["claims"]]) == (0, "claims", [3])
    assert "Q, K and V are three projections of one X. SHOWN" in done.err
    assert path.read_text().startswith("# Claims about token order")


def test_a_claim_with_another_verdict_than_documented_is_exit_code_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import orderproof.claims
    from orderproof.claims import select_claims

    faulty = (select_claims([3])[0].with_negative_control(0),)
    monkeypatch.setattr(orderproof.claims, "select_claims", lambda numbers: faulty)
    done = run("claims", "3")
    assert done.code == 1
    assert "exit code 1: claim 3 is documented as SHOWN and is REFUTED" in done.out
    assert run("claims", "3", "--quiet").out == ""


def test_a_card_is_made_of_a_finished_report_or_of_a_subject(run: Run, tmp_path: Path) -> None:
    finished, readme = tmp_path / "report.json", tmp_path / "README.md"
    run("prove", CAUSAL, "--law", "causal", "--expect", "causal=fails", "--json", str(finished), "-q")
    readme.write_text("# A model\n")
    done = run("card", str(finished), "--into", str(readme))
    assert (done.code, done.out) == (1, f"written: {readme}\n")
    assert readme.read_text().startswith("# A model\n\n<!-- orderproof: begin")
    assert "| OP201 | `causal` | **fail** | holds, and should not; proved: " in readme.read_text()
    assert run("card", CAUSAL, "--law", "causal", "--into", str(readme), "-q").code == 0
    assert readme.read_text().count("## Token order of ") == 1
    assert "| OP201 | `causal` | pass | proved: " in readme.read_text()
    piped = run("card", str(finished))
    assert (piped.code, piped.err) == (1, "")
    assert piped.out.startswith("<!-- orderproof: begin")
