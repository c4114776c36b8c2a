"""A tensor without elements depends on nothing, and is no error in a rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.recording.test_recording import Function, finding_of

EMPTY: dict[str, Callable[[Tensor], Tensor]] = {
    "sum of no rows": lambda x: x + x[:0].sum(0),
    "sum of no rows, kept": lambda x: x + x[:0].sum(0, keepdim=True),
    "sum of everything": lambda x: x + x[:0].sum(),
    "sum of no tokens": lambda x: x + x[:, :0].sum(1, keepdim=True),
    "product": lambda x: x + x[:0].prod(0),
    "any": lambda x: x + x[:0].any(0),
    "norm": lambda x: x + x[:0].norm(dim=0),
    "running sum": lambda x: x + x[:0].cumsum(0).sum(0),
    "softmax": lambda x: x + x[:, :0].softmax(1).sum(1, keepdim=True),
    "sort": lambda x: x + x[:0].sort(0).values.sum(0),
    "concatenation": lambda x: torch.cat([x, x[:0]]),
    "rows by index": lambda x: x + x[torch.zeros(0, dtype=torch.long)].sum(0),
    "einsum": lambda x: x + torch.einsum("bik,bjk->ik", x[:0], x[:0]),
}


@pytest.mark.parametrize("law", ["batch", "causal", "permutation"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_operator_on_an_empty_tensor_is_proved(name: str, law: str) -> None:
    found = finding_of(Function(EMPTY[name]), law)
    assert found.verdict == "proved", found.reason


def test_what_is_added_to_an_empty_sum_still_counts() -> None:
    assert (
        finding_of(Function(lambda x: x[:0].sum(0) + x.sum(0, keepdim=True).expand_as(x)), "batch").verdict == "refuted"
    )
