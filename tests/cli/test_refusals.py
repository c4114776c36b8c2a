"""The command line refuses in one line what it cannot do, before any work."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import Outcome, Run

HERE = Path(__file__).parent
FILE = str(HERE.parent / "auditing" / "examples.py")
CAUSAL = f"{FILE}:Causal"


def one_line(done: Outcome) -> str:
    """The single line on standard error of a refused call."""
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    (line,) = done.err.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", CAUSAL, "--law", "causal", "--law", "batch"], "expected one --law; got causal, batch; "),
        (["prove", CAUSAL, "--law", "causl"], r"expected a law; got 'causl'; did you mean 'causal'\?"),
        (["audit", CAUSAL, "--law", "nothing"], "expected a law, one of .*; got 'nothing'"),
        (["prove", CAUSAL, "--law", "causal", "--expect", "causal"], "expected --expect LAW=holds, .*; got 'causal'"),
        (["prove", CAUSAL, "--law", "causal", "--expect", "causal=maybe"], "got 'causal=maybe'"),
        (["audit", CAUSAL, "--expect", "order=holds"], "expected a law, one of .*; got 'order'"),
        (["audit", "arch:lama"], r"no architecture 'lama'; did you mean .*llama"),
        (["audit", "arch:llama?layers=3"], "has no key 'layers'"),
        (["audit", CAUSAL, "--length", "1"], "expected a length of at least 2 tokens; got 1"),
        (["audit", "arch:bert", "--tiny", "--length", "100000"], "expected a length of at most"),
        (["audit", str(HERE / "no_such_folder")], "no such folder"),
        (["audit", f"{FILE}:Missing"], "Missing"),
        (["audit", f"{FILE}:WIDTH"], "expected a torch.nn.Module or a function that returns one"),
        (["audit", str(HERE / "missing.py") + ":model"], "missing.py"),
        (["audit", "--tiny"], "expected an architecture, arch:NAME, with --tiny"),
        (["prove", CAUSAL, "--law", "causal", "--uniform", "rotary"], "expected --uniform to match an entry"),
        (["recheck", str(HERE / "no_such_file.json")], "cannot be read"),
        (["recheck", __file__], "not JSON"),
        (["engines", "install"], "expected a NAME with engines install"),
        (["engines", "list", "onnxruntime-genai"], "expected no NAME with engines list"),
        (["engines", "install", "mlx"], "expected an engine with an environment of its own, one of .*; got mlx: pip"),
        (["engines", "remove", "onnxruntime-genai@0.0.1"], "expected an installed environment; there is no .*0.0.1"),
        (["audit", "arch:llama", "--against", "mlx", "--engine-python", "python"], "expected --engine-python with one"),
        (["claims", "9"], "expected the number of a claim, one of 1, .*; got 9"),
        (["sensitivity", "arch:bert"], "BERT|bert: has no text input; expected a checkpoint folder"),
        (["sensitivity", CAUSAL], "has no text input; expected a checkpoint folder"),
        (["sensitivity", "-", "no_such_file.txt"], "no_such_file.txt: expected a text file with one sentence per line"),
        (["sensitivity", "--plot", "order.jpg"], r"expected --plot PATH to end in \.svg or \.png; got 'order\.jpg'"),
        (["sensitivity", "--pooling", "max"], "expected --pooling mean, first, last; got 'max'"),
        (["sensitivity", "--limit", "1"], "expected --limit from 2 to 1000 sentences; got 1"),
    ],
)
def test_refusal_is_one_line(run: Run, arguments: list[str], message: str) -> None:
    line = one_line(run(*arguments))
    assert line.startswith("orderproof: ")
    assert re.search(message, line)


def test_a_proof_of_no_law_lists_those_that_can_be_proved(run: Run) -> None:
    done = run("prove", CAUSAL)
    assert (done.code, done.out) == (2, "")
    first, *_, last = done.err.splitlines()
    assert first.startswith("OP101  permutation         A permutation of the tokens")
    assert "OP204  batch" in done.err
    assert "OP301" not in done.err  # measured
    assert last == f"orderproof: expected one of these laws: orderproof prove {CAUSAL} --law permutation"


def test_unknown_options_and_missing_arguments_are_usage_errors(run: Run) -> None:
    for arguments in (["audit", "--nonsense"], ["prove"], ["list", "nonsense"], ["nonsense"]):
        done = run(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err
        assert "Usage:" in done.err


def test_pickled_checkpoint_is_refused_unopened(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    torch.save({"x": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    assert "only pickled weights" in one_line(run("audit", str(tmp_path)))
    assert "a pickle can run code" in one_line(run("audit", str(tmp_path / "pytorch_model.bin")))


def test_what_is_no_report_or_no_card_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    finished = tmp_path / "report.json"
    assert re.search(r"report.json: a report cannot be read: No such file", one_line(run("card", str(finished))))
    finished.write_text('{"schema": 2}')
    line = one_line(run("card", str(finished)))
    assert line.endswith("report.json: not a report of schema version 2: orderproof_version: Field required")
    finished.write_text('{"schema": 1}')
    line = one_line(run("card", str(finished)))
    assert line.endswith("report.json: expected a report of schema version 2, got 1; audit again")
    line = one_line(run("card", CAUSAL, "--into", str(tmp_path / "README.md")))
    assert re.search("expected --into with an existing Markdown file; .*No such file", line)
    assert "got a report, whose findings are fixed" in one_line(run("card", str(finished), "--law", "causal"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", CAUSAL],
        ["prove", CAUSAL, "--law", "causal"],
        ["sensitivity", "-"],
        ["claims", "1"],
        ["atlas", "bert"],
        ["compare", "who_did_what"],
    ],
)
def test_where_nothing_can_be_written_is_reported_before_any_work(
    run: Run, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("audit", "prove", "sensitivity", "claims", "atlas", "compare"):
        name = "atlas_progress" if command == "atlas" else "progress"
        module = "audit_run" if command == "audit" else command
        monkeypatch.setattr(sys.modules[f"orderproof.cli.{module}"], name, no_work)
    line = one_line(run(*arguments, "--json", "absent/found.json"))
    error = (
        "cannot write 'absent/found.json': No such file or directory; give a file name in an existing, writable folder"
    )
    assert line == f"orderproof: {error}"
    assert list(tmp_path.iterdir()) == []


def no_work(**options: object) -> None:
    raise AssertionError(f"work was begun: {options}")
