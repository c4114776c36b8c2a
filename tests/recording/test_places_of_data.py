"""Operators that give the places of true elements, of which there are as many as the data has."""

import pytest
import torch
from torch import nn

from orderproof import prove

INPUTS = torch.randn(2, 7, 16)


@pytest.mark.parametrize("places", [torch.where, lambda x: x.nonzero(as_tuple=True)])
def test_places_of_data_are_refused_and_those_of_constants_are_recorded(places):
    class Read(nn.Module):
        def __init__(self, *, constant):
            super().__init__()
            self.constant = constant

        def forward(self, x):
            written = x.clone()
            found = places((torch.arange(7) if self.constant else x[0, :, 0]) > 2)
            written[:, found[0]] = 0
            return written.cumsum(1)

    refused = prove(Read(constant=False), "causal", inputs=INPUTS)
    assert refused.verdict == "undecided"
    assert refused.reason.startswith("the graph cannot be recorded: the size of a tensor depends on data (aten.")
    assert "torch.export" not in refused.reason
    assert prove(Read(constant=True), "causal", inputs=INPUTS).verdict == "proved"
