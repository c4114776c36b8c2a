"""The benchmark for a GPU says in one line what it lacks."""

from __future__ import annotations

import pytest
import torch

from benchmarks import turning_on_gpu


def test_without_a_gpu_it_refuses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert turning_on_gpu.main() == 1
    assert capsys.readouterr().err == "turning_on_gpu: needs a GPU, and torch sees none\n"
