"""Conditions that are not linear in the open sizes: they end a recording that only widens a theorem, and no other."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.errors import CaptureError
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open


class Asking(nn.Module):
    """A map that is another one where the number of tokens fulfils a condition that is not linear in it."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        use_other = tokens < 9 and tokens * tokens % (tokens // 3 + 1) == 0
        y: Tensor = self.other(x) if use_other else self.map(x)
        return y


def recorded(tokens: int, kept: Collection[str] = ()) -> list[OpenGraph]:
    inputs = [OpenInput("x", ("batch", "tokens", 8), torch.float32)]
    return record_open(Asking().eval(), inputs, {"batch": 3, "tokens": tokens}, kept=kept)


def unreadable(graph: OpenGraph) -> list[str]:
    return [str(c) for c in graph.conditions if c.functions]


def test_a_recording_that_widens_a_theorem_ends_at_a_condition_that_cannot_be_read() -> None:
    with pytest.raises(CaptureError, match=r"a condition on its sizes cannot be read: .*tokens"):
        recorded(7, kept=["tokens"])


def test_the_first_recording_keeps_it() -> None:
    (graph,) = recorded(7)
    assert unreadable(graph)


def test_a_recording_without_such_conditions_is_kept() -> None:
    (graph,) = recorded(23, kept=["tokens"])
    assert not unreadable(graph)


def test_the_theorem_begins_where_its_conditions_can_be_read() -> None:
    torch.manual_seed(0)
    theorem = prove(Asking().eval(), "causal", inputs=torch.randn(2, 23, 8)).theorem
    assert theorem is not None
    assert theorem.proved
    assert theorem.least_length == 9
    assert not theorem.conditions
