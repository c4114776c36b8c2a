"""The profile of an eager call ends with the block, however the block ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._C._autograd import _profiler_enabled

from orderproof.recording import eager_check


def test_a_limit_right_after_the_profiler_was_enabled_leaves_none_on(monkeypatch: pytest.MonkeyPatch) -> None:
    enable = eager_check._enable_profiler_legacy

    def interrupted(*settings: Any) -> None:
        enable(*settings)
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(eager_check, "_enable_profiler_legacy", interrupted)
        with pytest.raises(TimeoutError), eager_check.profiled_operators():
            pass
    assert not _profiler_enabled()
    with eager_check.profiled_operators() as operators:
        torch.ones(2).add(1)
    assert operators == ["aten::ones", "aten::add"]


def test_the_profiler_of_another_stays_on() -> None:
    with torch.autograd.profiler.profile():
        with pytest.raises(RuntimeError), eager_check.profiled_operators():
            pass
        assert _profiler_enabled()
