"""The benchmark of the encodings names missing packages, and its ratios are taken within a round."""

from __future__ import annotations

import time

import pytest

from benchmarks import encodings as benchmark


def test_a_missing_peer_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(benchmark, "PEERS", ("transformers", "nobody_has_this"))
    with pytest.raises(SystemExit):
        benchmark.main(["--only", "rotate"])
    assert "the peers nobody_has_this are not installed; pip install -c constraints.txt" in capsys.readouterr().err


def test_ratios_are_taken_within_a_round():
    def busy(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    base, found = benchmark.ratios({"a": lambda: busy(0.001), "b": lambda: busy(0.003)}, base="a", rounds=5)
    assert base >= 0.001
    assert found["a"] == 1.0
    assert found["b"] > 1.0


def test_every_table_has_a_title_that_names_its_limit():
    assert set(benchmark.TABLES) == {"rotate", "decode", "bias", "train", "table"}
    (page,) = benchmark.train(1)
    assert "limit" in page[0]
    assert len({len(line) for line in page[1]}) == 1
