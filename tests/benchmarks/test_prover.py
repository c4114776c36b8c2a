"""The benchmark runs and prints rows that can be read; no time is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import prover


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_it_runs_on_one_model_and_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "benchmarks.md"
    assert prover.main(["--model", "nn.Multi", "--repeats", "1", "--markdown", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = lines.index("\t".join(prover.HEADER))
    row = dict(zip(prover.HEADER, lines[head + 1].split("\t"), strict=True))
    assert row["model"] == "nn.MultiheadAttention"
    assert int(row["nodes"]) > 0
    assert all(
        float(row[name]) >= 0 for name in ("record [s]", "export [s]", "interpret [s]", "record/export", "ratio")
    )
    assert f"limits: interpret / export at most {prover.MAX_RATIO}, record / export at most 0.25" in lines
    assert any(line.startswith("versions: Python ") for line in lines)
    text = page.read_text(encoding="utf-8")
    assert all(cell in text for cell in row.values())


def test_every_model_of_the_promise_is_there():
    names = {name for name, _ in prover.models()}
    assert names == {*prover.ARCHITECTURES, "all-MiniLM-L6-v2", "nn.TransformerEncoder", "nn.MultiheadAttention"}
    assert all((name, backend) in prover.models() for name in prover.ARCHITECTURES for backend in ("sdpa", "eager"))


def test_an_unknown_model_is_one_clear_line(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        prover.main(["--model", "nothing"])
    assert "no model's name contains 'nothing'; known: all-MiniLM" in capsys.readouterr().err


def test_the_largest_ratio_is_held_against_the_limit():
    row = prover.Row("m", "sdpa", 1, 1, 7, 9, record=0.1, export=1.0, analysis=0.05)
    slow = prover.Row("n", "sdpa", 1, 1, 7, 9, record=0.4, export=1.0, analysis=0.2)
    assert prover.worst([row]) == (
        "largest ratio: 0.050 (m, sdpa), within the limit of 0.1; "
        "largest record/export: 0.100 (m, sdpa), within the limit of 0.25"
    )
    assert prover.worst([row, slow]) == (
        "largest ratio: 0.200 (n, sdpa), ABOVE the limit of 0.1; "
        "largest record/export: 0.400 (n, sdpa), ABOVE the limit of 0.25"
    )


def test_a_large_model_gives_a_row():
    spec = "arch:llama?num_hidden_layers=2&hidden_size=64&num_attention_heads=4&intermediate_size=128&vocab_size=100"
    row = prover.large(spec, "causal", None)
    cells = dict(zip(prover.LARGE_HEADER, prover.large_cells(row), strict=True))
    assert (cells["law"], cells["length"]) == ("causal", "7")
    assert float(cells["theorem [s]"]) >= 0
    assert row.parameters > 10_000
    assert row.nodes > 100
