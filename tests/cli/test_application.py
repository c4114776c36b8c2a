"""The command line: exit codes, what goes to which stream, and errors of one line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
import torch

from orderproof import __version__, encodings, laws
from orderproof.cli import main
from orderproof.ports.engines.registry import engines
from orderproof.report.schema import audit_schema
from tests.cli.conftest import STAGE

HERE = Path(__file__).parent
FILE = str(HERE.parent / "auditing" / "examples.py")
CAUSAL, BLIND, BROKEN = f"{FILE}:Causal", f"{FILE}:Attention", f"{FILE}:NotANumber"


@dataclass
class Outcome:
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command, run in this process; `err` is without the lines of progress."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, STAGE.sub("", captured.err))

    return call


def one_line(done: Outcome) -> str:
    """The single line on standard error of a refused call."""
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    (line,) = done.err.strip().splitlines()
    return line


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("subject", "law", "expect", "code"),
    [
        (CAUSAL, "causal", "holds", 0),
        (CAUSAL, "OP201", "any", 0),
        (CAUSAL, "causal", "fails", 1),
        (BLIND, "causal", "holds", 1),
        (BLIND, "causal", "fails", 0),
        (BROKEN, "causal", "holds", 3),
        (BROKEN, "causal", "any", 0),
    ],
)
def test_the_exit_code_follows_from_the_checks(run: Run, subject: str, law: str, expect: str, code: int) -> None:
    done = run("prove", subject, "--law", law, "--expect", f"causal={expect}")
    assert done.code == code
    assert {0: "exit code 0: ", 1: "OP201 causal FAIL: expected to", 3: "OP201 causal UNDECIDED: expected to hold"}[
        code
    ] in done.out
    assert done.err == ""


def test_kind_decides_what_is_expected(run: Run) -> None:
    assert run("prove", "arch:llama?num_hidden_layers=1", "--tiny", "--law", "causal", "-q").code == 0
    done = run("prove", "arch:llama?num_hidden_layers=1", "--tiny", "--law", "causal", "--expect", "causal=fails", "-q")
    assert (done.code, done.out, done.err) == (1, "", "")


def test_audit_reports_every_law(run: Run) -> None:
    done = run("audit", CAUSAL, "--details")
    assert (done.code, done.err) == (0, "")
    for law in laws.proved_laws():
        assert f"{law.code} {law.name}" in done.out or law.code in done.out
    assert "proved: " in done.out
    assert "witness: " in done.out


def test_chosen_laws_only(run: Run) -> None:
    done = run("audit", CAUSAL, "--law", "causal", "--law", "OP103", "--json", "-", "-q")
    assert [f["law"] for f in json.loads(done.out)["findings"]] == ["causal", "reversal"]


# ---------------------------------------------------------------- streams


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


def test_unknown_option_and_missing_law_are_usage_errors(run: Run) -> None:
    for arguments in (["audit", "--nonsense"], ["prove", CAUSAL], ["list", "nonsense"], ["nonsense"]):
        done = run(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err
        assert "Usage:" in done.err


def test_pickled_checkpoint_is_refused_unopened(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    torch.save({"x": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    assert "only pickled weights" in one_line(run("audit", str(tmp_path)))
    assert "a pickle can run code" in one_line(run("audit", str(tmp_path / "pytorch_model.bin")))


# ---------------------------------------------------------------- certificates


@pytest.fixture
def certificate(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "causal.json"
    assert run("prove", CAUSAL, "--law", "causal", "--certificate", str(path), "-q").code == 0
    return path


def test_certificate_is_accepted(run: Run, certificate: Path) -> None:
    done = run("recheck", str(certificate))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("accepted: theorem about ")
    assert "every weight" in done.out
    assert run("recheck", str(certificate), "-q").out == ""


def test_tampered_certificate_is_refused(run: Run, certificate: Path) -> None:
    text = certificate.read_text()
    assert "aten.softmax.int" in text
    certificate.write_text(text.replace("aten.softmax.int", "aten.cumsum.default"))
    done = run("recheck", str(certificate))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("refused: certificate 1: ")
    assert len(done.err.splitlines()) == 1


def test_certificate_of_what_is_not_proved_holds_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    run("prove", BLIND, "--law", "causal", "--certificate", str(path), "-q")
    assert json.loads(path.read_text()) == []
    assert run("recheck", str(path)).code == 2


def test_a_proof_at_one_length_has_no_certificate(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "blind.json"
    arguments = ["prove", "arch:gpt2?n_layer=1", "--tiny", "--law", "prompt_permutation", "--uniform", "wpe"]
    done = run(*arguments, "--certificate", str(path))
    assert done.code == 0
    assert "1 proof, of which 1 cannot be rechecked (proved at one length)" in done.out
    assert "no certificate of prompt_permutation of last_hidden_state: only theorems have one, and this is" in done.err
    assert json.loads(path.read_text()) == []
    assert run("recheck", str(path)).code == 2


# ---------------------------------------------------------------- words that change places


def test_sensitivity_of_the_bundled_model_on_a_file(run: Run, tmp_path: Path) -> None:
    text, drawn = tmp_path / "some.txt", tmp_path / "order.svg"
    text.write_text("the *cat* chased the *dog*.\nwords in this line may change places too.\nno.\n", encoding="utf-8")
    done = run("sensitivity", "-", str(text), "--json", "-", "--plot", str(drawn))
    data = json.loads(done.out)
    assert done.code == 0
    assert (data["sentences"], data["source"], data["pooling"]) == (2, "some.txt", "mean")
    assert {"role swap", "word swap", "reversal"} <= {m["perturbation"] for m in data["effects"]}
    assert len(data["layers"]) == 7
    assert "Swapping the two roles moves a sentence" in done.err
    assert f"written: {drawn}" in "".join(done.err.split("\n"))
    assert drawn.read_text(encoding="utf-8").startswith("<?xml")


# ---------------------------------------------------------------- the rest


def test_lists_name_everything(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = run("list", "engines")
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert [line.split()[0] for line in lines[1:] if not line.startswith(" ")] == list(engines())
    assert lines[lines.index("             compares batch, prefill") + 1].strip() == engines()["onnx"].how_to_install
    done = run("list", "laws")
    assert done.code == 0
    assert all(law.code in done.out and law.name in done.out for law in laws.proved_laws())
    done = run("list", "encodings")
    assert all(name in done.out for name in encodings.names())
    done = run("list", "rules")
    assert "softmax_equivariant" in done.out
    assert "movement_equivariant" in done.out
    done = run("list", "studies")
    assert "who_did_what" in done.out
    assert "Which encodings let a transformer tell who did it" in " ".join(done.out.split())


def test_node_check_is_reported(run: Run) -> None:
    done = run("prove", CAUSAL, "--law", "causal", "--check-nodes")
    assert done.code == 0
    assert "node check: the facts of" in done.out


def test_weights_these(run: Run) -> None:
    subject = f"{FILE}:ZeroTable"
    assert run("prove", subject, "--law", "permutation", "--expect", "permutation=holds", "-q").code == 1
    done = run("prove", subject, "--law", "permutation", "--expect", "permutation=holds", "--weights", "these")
    assert done.code == 0
    assert "for these weights" in done.out
    assert "table" in done.out


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.strip() == f"orderproof {__version__}"
    for command in ([], ["audit"], ["prove"], ["list"], ["recheck"], ["sensitivity"]):
        done = run(*command, "--help")
        assert done.code == 0
        assert "Usage:" in done.out


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
        monkeypatch.setattr(sys.modules[f"orderproof.cli.{command}"], name, no_work)
    line = one_line(run(*arguments, "--json", "absent/found.json"))
    error = (
        "cannot write 'absent/found.json': No such file or directory; give a file name in an existing, writable folder"
    )
    assert line == f"orderproof: {error}"
    assert list(tmp_path.iterdir()) == []


def no_work(**options: object) -> None:
    raise AssertionError(f"work was begun: {options}")
