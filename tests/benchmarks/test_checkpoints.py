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
    now = iter([checkpoints.Cost(30.0, 1.5, 0), checkpoints.Cost(34.5, 2.0, 0)])
    before = checkpoints.Cost(100.0, 5.0, 1)
    monkeypatch.setattr(checkpoints, "audit", lambda _folder, source: before if source == tmp_path else next(now))
    calls = {"float32": iter([0.5, 0.6]), "float64": iter([1.0, 1.25])}
    monkeypatch.setattr(checkpoints, "forward_seconds", lambda _folder, dtype: next(calls[dtype]))
    parameters = iter([20_000_000, 70_000_000])
    monkeypatch.setattr(checkpoints, "write_checkpoint", lambda _folder, _millions: next(parameters))
    page = tmp_path / "page.md"
    assert checkpoints.main(["--millions", "20", "70", "--before", str(tmp_path), "--markdown", str(page)]) == 0
    header, *lines, fit, _, last = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert fit[0].startswith("By least squares over all sizes, each further 100 million parameters take 9.0 s, and 18 ")
    first, second = (dict(zip(header, cells, strict=True)) for cells in lines)
    assert "8 billion" in last[0]
    assert (first["seconds"], first["seconds / forward"], first["before: seconds"], first["ratio"]) == (
        "30.0", "60", "100.0", "0.30",
    )  # fmt: skip
    assert (first["growth [s]"], first["growth / float64"]) == ("", "")
    assert (second["growth [s]"], second["growth / float64"]) == ("9.0", "18")  # 4.5 s for 50 million and 0.25 s
    for cells in lines:
        assert f"| {' | '.join(cells)} |" in page.read_text(encoding="utf-8")


def test_a_forward_call_is_measured_with_one_layer_in_a_dtype_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints.write_checkpoint(tmp_path, 0.5)
    monkeypatch.setattr("sys.argv", ["-c", str(tmp_path), "8", "float64"])
    seen: list[set[torch.dtype]] = []
    after = torch.nn.modules.module.register_module_forward_hook(
        lambda module, _, output: seen.append({p.dtype for p in module.parameters()})
    )
    names: dict[str, object] = {}
    try:
        exec(checkpoints.FORWARD, names)
    finally:
        after.remove()
    assert float(capsys.readouterr().out) > 0
    model = names["model"]
    assert isinstance(model, torch.nn.Module)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert {frozenset(each) for each in seen} > {frozenset({torch.float64}), frozenset({torch.bfloat16})}


def test_a_page_keeps_the_section_that_is_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    assert checkpoints.ideas_of(path) == ""
    path.write_text(f"# Benchmarks\n\nold\n\n{checkpoints.IDEAS}\n\n- one\n", encoding="utf-8")
    assert checkpoints.ideas_of(path) == f"\n{checkpoints.IDEAS}\n\n- one\n"
