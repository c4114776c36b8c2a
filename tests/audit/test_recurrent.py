"""Recurrent networks are taken apart into their steps, and so their laws are proved like any other's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.LSTM | nn.GRU], *, both_ways: bool) -> None:
        super().__init__()
        self.network = kind(16, 16, batch_first=True, bidirectional=both_ways)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.network(x)[0]
        return found


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("both_ways", [False, True], ids=["one way", "both ways"])
def test_a_recurrent_network_is_causal_exactly_where_it_runs_one_way(
    kind: type[nn.LSTM | nn.GRU], both_ways: bool
) -> None:
    torch.manual_seed(0)
    report = audit(
        Recurrent(kind, both_ways=both_ways).eval(),
        inputs=(torch.randn(2, 6, 16),),
        laws=["causal", "order_blind", "batch"],
    )
    found = {finding.law: finding.verdict for finding in report.findings}
    assert found == {"causal": "refuted" if both_ways else "proved", "order_blind": "refuted", "batch": "proved"}
