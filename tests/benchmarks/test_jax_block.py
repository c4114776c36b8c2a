"""The benchmark of a block of JAX: its twin in torch is proved, and both times are side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import jax_block


def test_the_twin_is_proved_causal_for_every_length() -> None:
    own, of_jax = jax_block.seconds_of_one("torch")
    assert own > 0
    assert of_jax == 0


def test_a_ratio_above_the_limit_is_named() -> None:
    assert jax_block.lines(1.0, (1.5, 1.0))[-1] == "Flax takes 2.50 times as long, within the limit of 3."
    assert jax_block.lines(1.0, (1.5, 2.0))[-1] == "Flax takes 3.50 times as long, ABOVE the limit of 3."


def test_the_page_has_both_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jax_block, "measure", lambda side, repeats: (1.0, 0.0) if side == "torch" else (1.5, 1.0))
    page = tmp_path / "page.md"
    assert jax_block.main(["--markdown", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "| torch | 1.00 | 0 | 1.00 |" in text
    assert "| Flax NNX | 1.50 | 1.00 | 2.50 |" in text
