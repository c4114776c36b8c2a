"""OP101 order_blind: permute the tokens, and the outputs are permuted alike.

    f(P X) = P f(X) for a per-token output,  f(P X) = f(X) for a pooled one,  for every permutation P.

A transposition and a cycle generate every permutation, so two relations settle all n! orders. Self-attention
without positions obeys it: softmax(P S P^T) = P softmax(S) P^T. A model that is to read language must not.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; Zaheer et al. 2017,
"Deep Sets", arXiv:1703.06114.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.laws.law import PermutationLaw
from orderproof.permutations import symmetric_generators
from orderproof.record import Remedy


class Honest(nn.Module):
    """A self-attention layer without positions."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        value: Tensor = self.value(x)
        return torch.softmax(scores, -1) @ value


class Faulty(Honest):
    """The same, adding each token's place to its vector."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.1 * torch.arange(x.shape[1])[:, None])


LAW = PermutationLaw(
    code="OP101",
    name="order_blind",
    statement="Tokens permuted: outputs permuted alike (per token) or unchanged (pooled).",
    expectation={"encoder": "fails", "causal_lm": "fails", "vision": "fails"},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "fails": Remedy(
            text="Give the model positions: added to embeddings, turned into queries and keys, or as a bias of scores.",
            diff="-x = embed(tokens)\n+x = embed(tokens) + embed_position(position_ids)",
        )
    },
    generators=symmetric_generators,
)
