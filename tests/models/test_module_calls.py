"""Calls of other sizes end in time."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

from orderproof.models import module_calls


class EndlessAtOtherLengths(nn.Module):
    """A map of each token that never returns for any number of tokens but seven."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        while x.shape[1] != 7:
            time.sleep(0.01)
        return x * 2


def test_a_module_that_never_returns_at_other_lengths_is_loaded() -> None:
    calls = module_calls.ModuleCalls(EndlessAtOtherLengths(), "endless")
    calls.seconds_left = 1.0
    with pytest.raises(TimeoutError, match="further calls took more than 30 s"):
        calls.further_shapes((torch.zeros(2, 8, 4),))
    assert calls.seconds_left <= 0
    began = time.monotonic()
    assert not calls.accepts((torch.zeros(2, 8, 4),))
    assert time.monotonic() - began < 5
    assert calls.accepts((torch.zeros(2, 7, 4),))
