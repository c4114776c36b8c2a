"""Shapes and examples of the inputs of a file, on the command line and in a configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Run
from tests.models.onnx_file.graphs import windows_model


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file that mixes more tokens than a drawn example has."""
    monkeypatch.chdir(tmp_path)
    onnx.save(windows_model(), "windows.onnx")
    return "windows.onnx"


def test_the_command_takes_a_shape(saved: str, run: Run) -> None:
    ended = run("prove", saved, "--law", "batch", "--shape", "mel=2x17x4")
    assert ended.code == 0, ended.err
    assert "17 tokens" in ended.out


def test_a_configuration_states_shapes_and_examples(saved: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez("example.npz", mel=np.ones((2, 15, 4), np.float32))
    Path("orderproof.toml").write_text(
        f'[subjects.stated]\nsubject = "{saved}"\nshape = {{mel = "2x17x4"}}\n'
        f'[subjects.given]\nsubject = "{saved}"\nexample = "example.npz"\n'
    )
    Path("inner").mkdir()
    np.savez("inner/other.npz", mel=np.ones((2, 15, 4), np.float32))
    assert run("prove", "stated", "--law", "batch").code == 0
    assert run("prove", "given", "--law", "batch").code == 0
    monkeypatch.chdir("inner")  # a file on the command line is looked for from here
    ended = run("prove", "given", "--law", "batch", "--example", "other.npz")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--shape", "mel=2x"), "expected --shape as NAME=2x80x320"),
        (("--shape", "mel=2x17x4", "--shape", "mel=2"), "expected the shape of 'mel' once"),
        (("--example", "missing.npz"), "'missing.npz' cannot be read: No such file"),
        (("--example", "windows.onnx"), "'windows.onnx' cannot be read"),
    ],
)
def test_what_cannot_be_read_is_one_line(saved: str, run: Run, options: tuple[str, ...], expected: str) -> None:
    ended = run("prove", saved, "--law", "batch", *options)
    assert ended.code == 2
    assert expected in ended.err
    assert ended.err.count("\n") == 1


def test_an_example_of_a_python_object_is_read_from_a_file(tmp_path: Path, run: Run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(6, 6)\n")
    np.savez("example.npz", input=np.random.default_rng(0).normal(size=(2, 5, 6)).astype(np.float32))
    assert run("prove", "model.py:build", "--law", "causal", "--example", "example.npz").code == 0
    ended = run("prove", "model.py:build", "--law", "causal", "--shape", "input=2x5x6")
    assert ended.code == 2
    assert "expected no shapes with a module, whose example inputs have them" in ended.err
