"""The GPU benchmark exits with one line if a requirement is missing."""

from __future__ import annotations

import pytest
import torch

from benchmarks import rotary_on_gpu


def test_without_a_gpu_it_exits_with_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert rotary_on_gpu.main([]) == 1
    assert capsys.readouterr().err == "rotary_on_gpu: expected a GPU, torch sees none\n"
