"""`orderproof conventions`: tables, a comparison, a list, and wrong input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orderproof.conventions.library import Library
from orderproof.ports.environments.environment import RECORD
from orderproof.records.conventions import AnswersRecord, ConventionsReport, QuestionRecord
from orderproof.report.conventions_terminal import conventions_markdown, versions_text
from tests.cli.conftest import Run

SOURCE = """
import math

def hides(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (scores if mask is None else scores.masked_fill(mask, -1e9)).softmax(-1) @ v

def nothing(x):
    return x

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "layers.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_a_function_that_differs_is_named_with_its_conventions(run: Run, file: Path):
    code, out, err = run("conventions", f"{file}:hides", "--against", "torch.sdpa")
    assert (code, err) == (1, "")
    assert "hides differs from torch.sdpa in 6 conventions: boolean_mask, float_mask," in " ".join(out.split())
    assert "True is hidden" in out
    assert "soft_cap" not in out  # which neither takes


def test_the_same_function_has_the_same_conventions(run: Run, file: Path):
    code, out, _ = run("conventions", f"{file}:hides", "--against", f"{file}:hides")
    assert code == 0
    assert "have the same conventions" in out


def test_json_alone_goes_to_standard_output(run: Run):
    code, out, _ = run("conventions", "torch.sdpa", "--json", "-")
    assert code == 0
    report = ConventionsReport.from_json(out)
    assert report.functions[0].answers["boolean_mask"] == "True is seen"
    assert json.loads(out)["schema"] == 1


def test_markdown_says_by_which_command_it_was_written(run: Run, tmp_path: Path):
    path = tmp_path / "table.md"
    code, out, _ = run("conventions", "torch.sdpa", "torch.multihead", "--markdown", str(path), "--quiet")
    text = path.read_text(encoding="utf-8")
    assert (code, out) == (0, "")
    assert "Written by `orderproof conventions torch.sdpa torch.multihead`" in text
    assert "| `torch.multihead` | True is hidden |" in text or "| `torch.multihead` | **True is hidden** |" in text


def test_the_list_has_every_function(run: Run):
    code, out, _ = run("conventions", "--list")
    assert code == 0
    assert "torch.sdpa\n" in out
    assert "transformers.llama_rotary" in out


def test_an_environment_of_a_library_is_listed_by_its_own_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ORDERPROOF_ENGINES", str(tmp_path))
    monkeypatch.setattr(Library, "version_here", "")
    for name in ("mlx-core@0.32.4", "mlx@0.31.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / RECORD).write_text(json.dumps({"installed_on": "2026-11-30"}), encoding="utf-8")
    _, out, _ = run("engines", "list")
    engines, listed = ([line.split()[0] for line in part.splitlines()] for part in out.strip().split("\n\n"))
    assert engines[0] == "engine"
    assert {"mlx@0.31.0", "vllm", "onnxruntime-genai"} <= set(engines)
    assert listed[:2] == ["library", "mlx-core@0.32.4"]
    assert "onnx-reference" in listed
    assert not {"mlx", "mlx-core", "onnx"} & set(listed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected a function or a library, or --list; got none"),
        (("torch.spda",), "got 'torch.spda'; did you mean 'torch.sdpa'?"),
        (("torch", "--against", "torch.sdpa", "onnx"), "expected one function with --against; got 2"),
        (("torch.sdpa", "--against", "torch"), "expected one function with --against; torch has 13"),
        (("FILE:nothing",), "expected a rotary function of vectors"),
        (("FILE:number",), "expected a function; got int"),
        (("FILE:hide",), "did you mean 'hides'"),
        (("missing.py:f",), "missing.py:f: no file missing.py"),
    ],
)
def test_wrong_input_is_refused_in_one_line(run: Run, file: Path, arguments: tuple[str, ...], message: str):
    code, out, err = run("conventions", *(each.replace("FILE", str(file)) for each in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_two_versions_are_compared_function_by_function():
    def answers(version: str, **found: str) -> AnswersRecord:
        name = f"onnx.attention@{version}"
        return AnswersRecord(function=name, kind="attention", version=f"onnx {version}", layout="", answers=found)

    asked = QuestionRecord(name="soft_cap", kind="attention", text="Before or after?", breaks="Much.")
    report = ConventionsReport(
        questions=(asked,), versions={},
        functions=(answers("1", soft_cap="before", window="takes none"), answers("2", soft_cap="after", window="2")),
    )  # fmt: skip
    assert versions_text(*report.functions) == "onnx.attention: onnx 1 and onnx 2 differ in 1 convention: soft_cap"
    assert "| `onnx.attention` | soft_cap | before (onnx 1) | after (onnx 2) |" in conventions_markdown(report, "")
    alone = report.model_copy(update={"functions": report.functions[:1]})
    assert "two versions" not in conventions_markdown(alone, "")
