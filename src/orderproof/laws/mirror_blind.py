"""OP103 mirror_blind: reverse the tokens, and the outputs are reversed.

    f(R X) = R f(X) for a per-token output,  f(R X) = f(X) for a pooled one,  R the reversal.

A bias that depends on the distance |i - j| alone (ALiBi in an encoder) breaks order-blindness but keeps this:
such a model cannot tell a sentence from its reverse.
Source: Press et al. 2022, "Train Short, Test Long", arXiv:2108.12409 (the bias); the law is elementary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.laws.law import PermutationLaw
from orderproof.permutations import reversal
from orderproof.record import Remedy


class Honest(nn.Module):
    """A self-attention layer that sees distances without their sign."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def bias(self, offset: Tensor) -> Tensor:
        """The bias of a score, from key position minus query position."""
        return -0.5 * offset.abs()

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        place = torch.arange(x.shape[1])
        scores = query @ key.transpose(1, 2) + self.bias(place[None, :] - place[:, None])
        return torch.matmul(torch.softmax(scores, -1), value)


class Faulty(Honest):
    """The same, with the sign."""

    def bias(self, offset: Tensor) -> Tensor:
        return -0.5 * offset


LAW = PermutationLaw(
    code="OP103",
    name="mirror_blind",
    statement="Tokens reversed: outputs reversed (per token) or unchanged (pooled).",
    expectation={"encoder": "fails", "causal_lm": "fails", "vision": "fails"},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "fails": Remedy(
            text="Give the model positions that tell before from after: distances without a sign do not.",
            diff="-bias = slope * (position - other).abs()\n+bias = slope * (position - other)",
        )
    },
    generators=lambda n: (reversal(n),),
)
