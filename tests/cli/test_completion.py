"""Completion in a shell: what is proposed for an incomplete word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("audit de", ["decoder"]),
        ("prove de", ["decoder"]),
        ("audit arch:llam", ["arch:llama"]),
        ("audit x.py:f --law caus", ["causal"]),
        ("audit x.py:f --law OP40", ["OP401", "OP402"]),
        ("prove x.py:f --law padd", ["padding"]),
        ("audit x.py:f --expect causal=h", ["causal=holds"]),
        ("audit x.py:f --as d", ["decoder"]),
        ("audit x.py:f --mode t", ["train"]),
        ("audit x.py:f --write-b", ["--write-baseline"]),
        ("list l", ["laws"]),
    ],
)
def test_bash_gets_proposals(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, proposed: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orderproof.toml").write_text('[subjects.decoder]\nsubject = "model.py:build"\n')
    monkeypatch.setenv("_ORDERPROOF_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"orderproof {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    done = run()
    assert (done.code, done.err) == (0, "")
    assert set(proposed) <= set(done.out.split())
    assert all(line.startswith(words.rsplit(maxsplit=1)[-1]) for line in done.out.splitlines())


def test_a_broken_configuration_proposes_nothing_and_ends_well(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orderproof.toml").write_text("=")
    monkeypatch.setenv("_ORDERPROOF_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "orderproof audit a")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run() == (0, "arch:\n", "")


def test_the_script_of_a_shell_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = run("--show-completion", "bash")
    assert done.code == 0
    assert "complete -o default -F _orderproof_completion orderproof" in done.out
