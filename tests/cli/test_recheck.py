"""`orderproof recheck` on certificates that someone else wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from orderproof.cli import main
from orderproof_recheck import certificate_file
from orderproof_recheck.theorem import digest_of
from tests.cli.conftest import STAGE
from tests.recheck.theorems.permutations.examples import example as permuted_example

ERASE_LINE, RIGHT_TO_LEFT, LONE_SURROGATE = "\x1b[2K\r", "\u202e", "\ud800"
CONTROL = ERASE_LINE + RIGHT_TO_LEFT + "\n" + LONE_SURROGATE


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["orderproof", "recheck", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert not acts(captured.err)
    return int(ended.value.code or 0), captured.out, STAGE.sub("", captured.err)


def acts(text: str) -> bool:
    return any(c in text for c in ("\x1b", "\r", RIGHT_TO_LEFT, LONE_SURROGATE))


def with_control_characters() -> dict[str, Any]:
    """An accepted certificate whose printed texts have control characters."""
    made = permuted_example("table of one number")
    made["subject"] += CONTROL
    made["output"] += CONTROL
    made["assumptions"].append(CONTROL)
    return {**made, "digest": digest_of(made)}


def test_texts_of_an_accepted_certificate_cannot_control_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = tmp_path / "c.json", with_control_characters()
    path.write_text(json.dumps(made))
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, err) == (0, "")
    assert not acts(out)
    assert out.count(r"\x1b[2K\r\u202e\n\ud800") == 3
    assert f"  assuming {made['assumptions'][0]}" in out


def test_texts_of_a_refused_certificate_cannot_control_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = tmp_path / "c.json", with_control_characters()
    made["calls"][0]["ranges"][0]["recordings"][0]["steps"][-1]["operator"] = f"aten.{CONTROL}.default"
    path.write_text(json.dumps({**made, "digest": digest_of(made)}))
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, out) == (1, "")
    assert not acts(err)
    assert r"\x1b[2K" in err
    assert len(err.splitlines()) == 1


def test_a_file_over_the_size_limit_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(certificate_file, "MAX_FILE_BYTES", 2_000_000)
    path = tmp_path / f"{ERASE_LINE.strip()}.json"
    path.write_bytes(b" " * 2_000_001)
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, out) == (2, "")
    assert not acts(err)
    assert len(err.splitlines()) == 1
    assert "expected certificates of at most 2 MB" in err


def test_a_theorem_about_permuted_tokens_is_printed_or_refused_by_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.json"
    made = permuted_example("table of one number")
    path.write_text(json.dumps(made))
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, err) == (0, "")
    assert out.startswith("accepted: theorem about output in a small program")
    assert "the output moves with the tokens along dimension 1" in out
    assert "given triangle: stored, " in out
    recording = made["calls"][0]["ranges"][0]["recordings"][0]
    step = next(s for s in recording["steps"] if s["operator"].startswith("aten.softmax"))
    step["fact"]["motions"][-1] = "still"
    made["digest"] = digest_of(made)
    path.write_text(json.dumps(made))
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, out) == (1, "")
    assert f"({step['node']}, {step['operator']}) does not follow: it reads other elements in run 2" in err
    assert len(err.splitlines()) == 1


def test_a_certificate_of_a_proof_at_one_length_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"certificate": 4, "law": "causal", "subject": f"model.py:{CONTROL}", "steps": []}))
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "certificate 1 (causal of model.py:" in err
    assert "is of a proof at one length, which recheck no longer checks; orderproof prove SUBJECT --law causal" in err
