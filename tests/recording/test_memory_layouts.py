"""Operators that compute something else where elements of a tensor share memory are not followed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof import prove
from tests.function_module import Function

Computed = Callable[[Tensor], Tensor]
TOKENS = (2, 7, 8)


def windows(x: Tensor) -> Tensor:
    """The last 16 numbers of the first feature, for each token: tokens share memory."""
    return F.pad(x[..., 0], (15, 0)).unfold(1, 16, 1)[:, None]


def attend(queries: Tensor, keys: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(queries, keys, keys, is_causal=True)[:, 0]


def copied(x: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy of the tokens in new memory."""
    return torch.empty_strided(x.shape, strides).copy_(x) * 2


def median_into(x: Tensor) -> Tensor:
    """A median that is written into other tensors."""
    found = torch.empty(x.shape[0], x.shape[2]), torch.empty(x.shape[0], x.shape[2], dtype=torch.int64)
    torch.median(x[:, :1].expand(-1, x.shape[1], -1), 1, out=found)
    return x + found[0][:, None]


UNSOUND: dict[str, Computed] = {
    "median": lambda x: x + x.sum(-1, keepdim=True).expand(-1, -1, 8).median(-1)[0][..., None],
    "median that ignores NaN": lambda x: x + x.sum(-1, keepdim=True).expand(-1, -1, 8).nanmedian(-1)[0][..., None],
    "median of a broadcast tensor": lambda x: x + torch.broadcast_to(x[..., :1], x.shape).median(2).values[..., None],
    "median along another dimension": lambda x: x + x[..., :1].expand(-1, -1, 8).median(1)[0][:, None],
    "median into other tensors": median_into,
    "attention of windows": lambda x: attend(windows(x), windows(x)),
    "attention of windows to copies": lambda x: attend(windows(x), windows(x).contiguous()),
    "new memory in windows": lambda x: copied(x, (x.shape[1] * 8, 4, 1)),
    "new memory with rows in each other": lambda x: copied(x, (8, 8, 1)),
    "new memory like other memory": lambda x: x.new_empty_strided(x.shape, (x.shape[1] * 8, 4, 1)).copy_(x) * 2,
}
SOUND: dict[str, Computed] = {
    "median": lambda x: x + x.median(-1)[0][..., None],
    "median of a copy": lambda x: x + x.sum(-1, keepdim=True).expand(-1, -1, 8).contiguous().median(-1)[0][..., None],
    "median of one element": lambda x: x + x[..., :1].expand(-1, -1, 1).median(-1)[0][..., None],
    "attention of copied windows": lambda x: attend(windows(x).contiguous(), windows(x)),
    "attention of heads": lambda x: attend(*[x.unflatten(-1, (2, 4)).transpose(1, 2)] * 2),
    "attention of an expanded query": lambda x: attend(x[:, None, :1].expand(-1, 2, x.shape[1], -1), x[:, None]),
    "new memory": lambda x: copied(x, (x.shape[1] * 8, 8, 1)),
    "new memory with tokens last": lambda x: copied(x, (x.shape[1] * 8, 1, x.shape[1])),
}


@pytest.mark.parametrize("law", ["causal", "batch"])
@pytest.mark.parametrize("name", UNSOUND)
def test_no_law_is_proved_where_elements_share_memory(name: str, law: str) -> None:
    finding = prove(Function(UNSOUND[name]), law, inputs=(torch.randn(TOKENS),))
    assert finding.verdict != "proved"
    assert finding.reason.startswith("the graph cannot be recorded: ")
    assert "share" in finding.reason or "expanded tensor" in finding.reason


@pytest.mark.parametrize("law", ["causal", "batch"])
@pytest.mark.parametrize("name", SOUND)
def test_other_layouts_are_followed(name: str, law: str) -> None:
    finding = prove(Function(SOUND[name]), law, inputs=(torch.randn(TOKENS),))
    assert finding.verdict == "proved", finding.reason
    assert finding.theorem is not None
    assert finding.theorem.proved, finding.theorem.reason
