"""Asking for a check by name is an expectation: a decoder with an off-by-one mask ends the first command with 1."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from orderproof import audit, prove
from orderproof.cli import main
from orderproof.errors import UsageError
from orderproof.models import from_module
from tests.cli.conftest import STAGE

MODEL = """
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Decoder(nn.Module):
    def __init__(self, diagonal):
        super().__init__()
        torch.manual_seed(0)
        self.diagonal = diagonal
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x + torch.arange(x.shape[1])[:, None]).chunk(3, dim=-1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(self.diagonal)
        return x + scaled_dot_product_attention(q, k, v, attn_mask=mask)


def good():
    return Decoder(0), torch.randn(2, 7, 8)


def bad():
    return Decoder(1), torch.randn(2, 7, 8)


def ahead():
    return Decoder(2), torch.randn(2, 7, 8)


def none():
    return Decoder(6), torch.randn(2, 7, 8)


def unseeded():
    drawn = nn.Linear(8, 24)
    model = Decoder(1)
    model.qkv = drawn
    return model, torch.randn(2, 7, 8)
"""
PLACE = "model.py:16"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in a folder with the two models: exit code, standard output, standard error."""
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, STAGE.sub("", captured.err)

    return call


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_a_named_check_fails_without_any_other_option(run: Run) -> None:
    code, out, _ = run("audit", "model.py:bad", "--law", "causal")
    assert code == 1
    assert out.splitlines()[3] == f"bad: fails OP201 causal at {PLACE}; no check passed, 1 failed."
    assert f"line {PLACE}" in unwrapped(out)
    assert "1 ! . . . . ." in out
    assert "exit code 1: OP201 causal FAIL: expected to hold, it does not hold (witness)" in out
    assert run("audit", "model.py:good", "--law", "OP201")[0] == 0
    assert run("prove", "model.py:bad", "--law", "causal", "-q")[0] == 1


@pytest.mark.parametrize("command", ["audit", "prove"])
def test_a_named_check_that_does_not_apply_is_undecided(command: str, run: Run) -> None:
    code, out, _ = run(command, "model.py:good", "--law", "padding")
    assert code == 3
    assert "does not apply, so nothing was checked: it takes no attention mask" in unwrapped(out)
    code, out, _ = run(command, "model.py:good", "--law", "padding", "--expect", "padding=any")
    assert code == 3
    assert "exit code 3: no law was decided, so nothing was checked" in unwrapped(out)


def test_an_expectation_replaces_that_of_a_named_check(run: Run) -> None:
    assert run("audit", "model.py:bad", "--law", "causal", "--expect", "causal=fails", "-q")[0] == 0
    assert run("audit", "model.py:bad", "--law", "causal", "--expect", "causal=any", "-q")[0] == 0
    assert run("audit", "model.py:good", "--law", "causal", "--expect", "causal=fails", "-q")[0] == 1


@pytest.mark.parametrize("command", ["audit", "prove"])
def test_a_property_asked_for_by_name_is_a_check(command: str, run: Run) -> None:
    code, out, _ = run(command, "model.py:bad", "--law", "permutation")
    assert code == 1
    assert "OP101 permutation FAIL: expected to hold, it does not hold (witness)" in unwrapped(out)
    assert run(command, "model.py:none", "--law", "OP104", "-q")[0] == 3  # it takes no position ids


def test_a_named_property_of_which_nothing_is_expected_describes_the_model(run: Run) -> None:
    code, out, _ = run("audit", "model.py:bad", "--law", "permutation", "--expect", "permutation=any")
    assert code == 0
    assert "sees token order" in out
    last = unwrapped(out[out.index("to make this a gate") :])
    assert last == (
        "to make this a gate: nothing is checked yet; --as decoder or --as encoder checks what such a model should do; "
        "--expect permutation=holds (or fails) checks one law"
    )


def test_the_expectation_of_a_kind_counts_for_a_named_property(run: Run) -> None:
    assert run("audit", "model.py:bad", "--as", "encoder", "--law", "permutation", "-q")[0] == 0  # expected to fail
    arguments = ("--as", "encoder", "--law", "permutation", "--expect", "permutation=holds", "-q")
    assert run("audit", "model.py:bad", *arguments)[0] == 1


def test_the_kind_decides_what_is_checked(run: Run) -> None:
    code, out, _ = run("audit", "model.py:bad", "--as", "decoder")
    assert code == 1
    assert "fails OP201 causal" in out
    assert "to make this a gate" not in out
    assert run("audit", "model.py:good", "--as", "decoder", "-q")[0] == 0
    code, out, _ = run("audit", "model.py:bad", "--as", "encoder", "--law", "causal", "--law", "batch")
    assert code == 0
    assert "does not hold, as expected" in out
    code, out, _ = run("audit", "model.py:bad", "--law", "causal", "--law", "stateless", "--expect", "causal=any")
    assert (code, "to make this a gate: --as decoder" in unwrapped(out)) == (0, True)


def test_an_off_by_one_mask_ends_the_first_command_with_one(run: Run, tmp_path: Path) -> None:
    names = {name: tmp_path / f"report.{name}" for name in ("json", "sarif", "html", "junit")}
    code, out, _ = run("audit", "model.py:bad", *[x for n, p in names.items() for x in (f"--{n}", str(p))])
    assert code == 1
    reason = (
        f"the mask of {PLACE} hides all later tokens but the next one, like a causal mask that is off by one; "
        "if this is intended, state it: --as encoder or --expect causal=fails"
    )
    assert f"because {reason}" in unwrapped(out)
    assert f"line {PLACE}" in unwrapped(out)
    assert "exit code 1: OP201 causal FAIL: expected to hold, it does not hold (witness)" in out
    assert reason in names["html"].read_text()
    assert f"because {reason}" in unwrapped(names["junit"].read_text())
    assert f"because {reason}" in unwrapped(
        json.loads(names["sarif"].read_text())["runs"][0]["results"][0]["message"]["text"]
    )
    assert reason.startswith(
        next(f["expected_because"] for f in json.loads(names["json"].read_text())["findings"] if f["law"] == "causal")
    )
    code, out, _ = run("audit", "model.py:bad", "--expect", "causal=fails")
    assert (code, "off by one" in out) == (0, False)


def test_a_mask_that_shows_two_later_tokens_is_pointed_out(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("audit", "model.py:ahead", "--html", str(tmp_path / "report.html"))
    assert code == 0
    expected = "hides all later tokens but the next 2; if the model should be causal, --law causal shows the line"
    assert expected in unwrapped(out)
    assert expected in (tmp_path / "report.html").read_text()
    for arguments in (("model.py:good",), ("model.py:ahead", "--law", "causal"), ("model.py:none",)):
        assert "Almost causal" not in run("audit", *arguments)[1]


def test_the_seed_determines_the_weights_that_a_function_draws(run: Run) -> None:
    def difference(seed: str) -> str:
        out = run("audit", "model.py:unseeded", "--law", "causal", "--seed", seed)[1]
        return next(line for line in out.splitlines() if "measured" in line)

    state = torch.random.get_rng_state()
    assert difference("3") == difference("3") != difference("4")
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_kind_that_does_not_exist_is_refused(run: Run) -> None:
    code, out, err = run("audit", "model.py:bad", "--as", "decodr")
    assert (code, out) == (2, "")
    assert err == "orderproof: expected kind to be decoder or encoder; got 'decodr'; did you mean 'decoder'?\n"
    with pytest.raises(UsageError, match="expected kind to be decoder or encoder; got 'decodr'; did you mean"):
        audit(nn.TransformerEncoderLayer(8, 2, batch_first=True), kind="decodr")


def test_all_reports_name_the_line_of_the_mask(run: Run, tmp_path: Path) -> None:
    names = {name: tmp_path / f"report.{name}" for name in ("json", "sarif", "html", "junit")}
    code, out, _ = run(
        "audit", "model.py:bad", "--law", "causal", *[x for n, p in names.items() for x in (f"--{n}", str(p))]
    )
    assert code == 1
    assert PLACE in out
    (finding,) = json.loads(names["json"].read_text())["findings"]
    assert finding["fix_source"] == PLACE
    (result,) = json.loads(names["sarif"].read_text())["runs"][0]["results"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("model.py", 16)
    assert place["region"]["snippet"]["text"] == finding["fix_line"]
    assert f"line {PLACE}: mask = torch.ones" in unwrapped(result["message"]["text"])
    assert f'<code class="quiet">{PLACE}</code>' in names["html"].read_text()
    assert f"{PLACE}: mask = torch.ones" in names["junit"].read_text()


def test_python_expects_the_same() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    assert audit(layer, laws=["causal"]).exit_code == prove(layer, "causal").kind.count("check") == 1
    assert audit(layer, laws=["causal"], expect={"causal": "any"}).exit_code == 0
    assert prove(layer, "causal", kind="encoder").outcome == "pass"
    assert prove(layer, "permutation").outcome == "pass"
    assert prove(layer, "permutation", expect="any").outcome == "no"  # it does not see token order
    assert prove(layer, "permutation", kind="encoder", expect="fails").outcome == "fail"
    with pytest.raises(UsageError, match="expected kind for a module or a text; got it for a Subject"):
        audit(from_module(layer), kind="decoder")


@pytest.mark.slow
def test_pytest_expects_the_same(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "test_model.py").write_text(
        "from model import bad\n\ndef test_causal(orderproof):\n"
        "    model, x = bad()\n    orderproof.assert_law(model, 'causal', inputs=x)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"line {PLACE}: mask = torch.ones" in unwrapped(done.stdout)
    assert "1 ! . . . . ." in done.stdout
