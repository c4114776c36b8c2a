"""The command line: exit codes, certificates, lists and options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orderproof import __version__, encodings, laws
from orderproof.ports.engines.registry import engines
from tests.cli.conftest import Run

FILE = str(Path(__file__).parent.parent / "auditing" / "examples.py")
CAUSAL, BLIND, BROKEN = f"{FILE}:Causal", f"{FILE}:Attention", f"{FILE}:NotANumber"

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
        (BROKEN, "causal", "any", 3),
    ],
)
def test_the_exit_code_follows_from_the_checks(run: Run, subject: str, law: str, expect: str, code: int) -> None:
    done = run("prove", subject, "--law", law, "--expect", f"causal={expect}")
    assert done.code == code
    undecided = "no law was decided" if expect == "any" else "OP201 causal UNDECIDED: expected to hold"
    assert {0: "exit code 0: ", 1: "OP201 causal FAIL: expected to", 3: undecided}[code] in done.out
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
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:] if not line.startswith(" ")] == list(engines())
    onnx = [line.strip() for line in lines[[line.split()[0] for line in lines].index("onnx") :]]
    assert onnx[onnx.index("compares batch, prefill") + 1] == engines()["onnx"].how_to_install
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
