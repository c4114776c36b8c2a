"""A violation that needs more tokens than those of the audit is found."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orderproof import prove
from orderproof.auditing.search.witness import MANY_TIMES


class Capacity(nn.Module):
    """Experts that take the first six tokens of a row: pushed out is who comes later."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.value = nn.Linear(8, 4), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        chosen = F.one_hot(self.router(x).argmax(-1), 4)
        place = (chosen.cumsum(1) * chosen).sum(-1)
        return x + self.value(x) * (place <= 6)[..., None]


def test_tokens_that_an_expert_does_not_take_refute_the_law() -> None:
    torch.manual_seed(0)
    finding = prove(Capacity().eval(), "permutation", inputs=torch.randn(2, 7, 8))
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert len(finding.witness.tokens_before) == MANY_TIMES * 7
