"""Torch computes the median of an expanded tensor from memory of other elements: no law of it is proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof import prove
from tests.function_module import Function

Median = Callable[[Tensor], Tensor]
EXPANDED: dict[str, Median] = {
    "median": lambda x: x.sum(-1, keepdim=True).expand(-1, -1, 8).median(-1)[0],
    "nanmedian": lambda x: x.sum(-1, keepdim=True).expand(-1, -1, 8).nanmedian(-1)[0],
    "of a broadcast sum": lambda x: torch.broadcast_to(x[..., :1], x.shape).median(2).values,
    "along a dimension of another expanded one": lambda x: x[..., :1].expand(-1, -1, 8).median(1)[0].mean(-1)[:, None],
}
PLAIN: dict[str, Median] = {
    "median": lambda x: x.median(-1)[0],
    "of a copy": lambda x: x.sum(-1, keepdim=True).expand(-1, -1, 8).contiguous().median(-1)[0],
    "of one element": lambda x: x[..., :1].expand(-1, -1, 1).median(-1)[0],
}


@pytest.mark.parametrize("law", ["causal", "batch"])
@pytest.mark.parametrize("name", EXPANDED)
def test_the_median_of_an_expanded_tensor_is_not_followed(name: str, law: str) -> None:
    finding = prove(Function(lambda x: x + EXPANDED[name](x)[..., None]), law, inputs=(torch.randn(2, 7, 8),))
    assert finding.verdict != "proved"
    assert "expanded tensor" in finding.reason


@pytest.mark.parametrize("law", ["causal", "batch"])
@pytest.mark.parametrize("name", PLAIN)
def test_other_medians_are_followed(name: str, law: str) -> None:
    finding = prove(Function(lambda x: x + PLAIN[name](x)[..., None]), law, inputs=(torch.randn(2, 7, 8),))
    assert finding.verdict == "proved", finding.reason
