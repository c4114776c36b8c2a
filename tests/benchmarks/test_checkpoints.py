"""The benchmark of checkpoints writes one that is loaded, and prints rows that can be read; no time is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import checkpoints
from orderproof.models import load


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "WIDTHS", ((4000, 128),))
    monkeypatch.setattr(checkpoints, "VOCABULARY", 500)
    monkeypatch.setattr(checkpoints, "MOST_IN_FILE", 2e5)


def test_a_checkpoint_in_several_files_is_loaded_in_its_dtype(tmp_path: Path) -> None:
    parameters = checkpoints.write_checkpoint(tmp_path, 0.5)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    subject = load(str(tmp_path))
    assert subject.parameter_count == parameters
    assert {p.dtype for p in subject.module.parameters()} == {torch.bfloat16}


def test_it_prints_and_writes_a_row_for_each_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {"now": checkpoints.Cost(30.0, 1.5, 0), "before": checkpoints.Cost(100.0, 5.0, 1)}
    monkeypatch.setattr(checkpoints, "audit", lambda _folder, source: costs["before" if source == tmp_path else "now"])
    monkeypatch.setattr(checkpoints, "forward_seconds", lambda _folder: 0.5)
    page = tmp_path / "page.md"
    assert checkpoints.main(["--millions", "0.5", "--before", str(tmp_path), "--markdown", str(page)]) == 0
    header, cells = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    row = dict(zip(header, cells, strict=True))
    assert (row["seconds"], row["seconds / forward"], row["before: seconds"], row["ratio"]) == (
        "30.0", "60", "100.0", "0.30",
    )  # fmt: skip
    assert f"| {' | '.join(cells)} |" in page.read_text(encoding="utf-8")
