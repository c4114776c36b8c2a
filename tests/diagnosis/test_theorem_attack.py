"""The command that tries to contradict theorems: it compares runs, and a contradiction is its exit code."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "theorem_attack.py"


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    """The command, in this process, which has imported the libraries already."""
    spec = importlib.util.spec_from_file_location("theorem_attack", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module.main


def written(path: Path, difference: float) -> Path:
    law = {"comparisons": 2, "moved": 2, "skipped": {}, "largest": difference}
    wrong = [{"law": "causal", "call_mode": "plain", "difference": difference}] if difference > 1e-3 else []
    rows = [{"name": "llama", "laws": {"causal plain": law}, "contradictions": wrong}, {"name": "x", "error": "E"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("difference", "code"), [(1e-7, 0), (0.2, 1)])
def test_the_summary_counts_and_fails_for_a_contradiction(
    tmp_path: Path, difference: float, code: int, main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(written(tmp_path / "results.jsonl", difference)), "--summary"]) == code
    printed = capsys.readouterr().out
    assert "causal plain\t1\t2\t2" in printed
    assert f"contradictions: {code}" in printed
    assert "1 not examined: E" in printed


@pytest.mark.slow
def test_theorems_of_two_architectures_are_not_contradicted(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    command = [sys.executable, str(TOOL), str(results), "llama", "bert", "--comparisons", "2"]
    assert subprocess.run(command, check=False).returncode == 0
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [row["name"] for row in rows] == ["llama", "bert"]
    for row in rows:
        assert row["contradictions"] == []
        assert all(law["comparisons"] >= 2 and law["moved"] for law in row["laws"].values())
    assert {"causal plain", "padding padded", "batch padded", "position_ids labelled"} <= set(rows[0]["laws"])
