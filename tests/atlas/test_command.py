"""The atlas command: architectures are audited, and wrong usage is one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from orderproof.atlas import row as atlas_row
from orderproof.atlas.row import AtlasRow, make_row
from orderproof.atlas.runner import select_architectures
from orderproof.cli import main
from orderproof.errors import UsageError
from tests.atlas.processes import rows_in
from tests.cli.conftest import STAGE


@pytest.mark.slow
def test_architectures_are_audited_and_listed_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*more: str) -> str:
        names = ("qwen2_audio", "bert", "bark")
        arguments = ["atlas", *names, "--store", str(tmp_path / "store"), "--workers", "2", *more]
        monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code in (0, None)
        return capsys.readouterr().out

    shown = call("--json", str(tmp_path / "rows"), "--markdown", str(tmp_path / "page"))
    assert "4 of 4 architectures finished" in shown
    assert sorted(rows_in(tmp_path / "store")) == ["bark", "bert", "qwen2", "qwen2_audio"]

    made = json.loads((tmp_path / "rows").read_text())
    bark, bert, text, audio = (AtlasRow.model_validate(each) for each in made["rows"])
    verdicts = {each.law: each.verdict for each in bert.laws}
    assert {verdicts[name] for name in ("permutation", "prompt_permutation", "reversal", "causal")} == {"refuted"}
    assert bert.laws[0].entries_complete is True
    assert [(e.operator, e.origin) for e in bert.entries] == [
        ("aten.add.Tensor", "model.embeddings.position_embeddings.weight")
    ]
    assert {each.output for each in bert.other_output_laws} == {"pooler_output"}
    assert (audio.alias_of, audio.laws) == ("qwen2", ())
    causal = next(each for each in text.laws if each.code == "OP201")
    assert (text.model_kind, causal.verdict, causal.expected, causal.expectation_met) == (
        "causal_lm",
        "proved",
        "holds",
        True,
    )
    assert not any("over the real numbers" in each for each in causal.assumptions)  # the page states it once
    called = {(each.law, each.call_mode): each.verdict for each in text.laws}
    assert called["padding", "padded"] == called["packing", "packed"] == called["batch", ""] == "proved"
    assert made["operators"]["aten.linear.default"] == 2
    assert bark.failure is not None
    assert bark.failure.category == "not text or vision"

    before = (tmp_path / "store").read_bytes()
    first = (tmp_path / "page").read_text()
    assert "All 4 names of transformers" in first
    assert "of these 2 have findings, 1 are aliases and 1 have no model" in first
    monkeypatch.setattr(atlas_row, "make_row", None)  # no row may be repeated
    call("--json", str(tmp_path / "again.json"), "--markdown", str(tmp_path / "again"))
    assert (tmp_path / "store").read_bytes() == before
    assert (tmp_path / "again").read_text() == first
    assert (tmp_path / "again.json").read_text() == (tmp_path / "rows").read_text()
    monkeypatch.setattr(
        sys, "argv", ["orderproof", "atlas", "--from-json", str(tmp_path / "rows"), "--markdown", "-", "-q"]
    )
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out == first


def test_unknown_architecture_is_refused() -> None:
    with pytest.raises(UsageError, match=r"transformers .* has no architecture 'bertt'; did you mean .*bert"):
        select_architectures(["bertt"])
    assert select_architectures(["arch:gpt2", "bert", "bert"]) == ("bert", "gpt2")
    assert len(select_architectures([])) > 400


@pytest.mark.parametrize(
    ("name", "category", "text"),
    [
        ("sam_prompt_encoder", "no base model", "transformers has no base model for SamPromptEncoderConfig"),
        ("no_such", "cannot be built", "has no architecture"),
    ],
)
def test_load_failures_have_a_category(name: str, category: str, text: str) -> None:
    row = make_row(name, None)
    assert row.failure is not None
    assert row.failure.category == category
    assert text in row.failure.reason


def test_unsupported_attention_backend_is_a_reason() -> None:
    row = make_row("mamba", "sdpa")
    assert row.failure is not None
    assert "has no SDPA attention" in row.failure.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "-", "--markdown", "-"], "expected at most one output on standard output (-); got 2"),
        (["--date", "yesterday"], "expected --date YYYY-MM-DD; got 'yesterday'"),
        (["bertt"], "has no architecture 'bertt'; did you mean 'bert'"),
        (["bert", "--workers", "0"], "expected --workers above 0; got 0"),
        (["bert", "--from-json", "x"], "expected no NAME with --from-json, which audits nothing; got bert"),
        (["--from-json", "x"], "expected an atlas, written by --json; 'x' cannot be read: No such file or directory"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str],
    message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["orderproof", "atlas", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    (line,) = STAGE.sub("", capsys.readouterr().err).splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []
