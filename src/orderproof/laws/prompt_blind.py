"""OP102 prompt_blind: permute all tokens but the last, and the output at the last token is unchanged.

    f(P X)_n = f(X)_n for every permutation P with P(n) = n.

With one query, swapping the prompt changes nothing. It is true of one causal layer without positions: the
mask is uniform on the last row. It is false of two: the tokens before the last already know how many tokens
stand before them.
Source: Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers",
arXiv:2305.19466, theorem 1 (causal layers without positions can recover them).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.laws.law import PermutationLaw
from orderproof.permutations import symmetric_generators
from orderproof.record import Remedy


class Honest(nn.Module):
    """One causal self-attention layer without positions."""

    layers = 1

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(8, 24) for _ in range(self.layers))

    def forward(self, x: Tensor) -> Tensor:
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for qkv in self.maps:
            query, key, value = qkv(x).chunk(3, -1)
            scores = (query @ key.transpose(1, 2)).masked_fill(future, float("-inf"))
            x = x + scores.softmax(-1) @ value
        return x


class Faulty(Honest):
    """Two of them."""

    layers = 2


LAW = PermutationLaw(
    code="OP102",
    name="prompt_blind",
    statement="All tokens but the last permuted: the output at the last token is unchanged.",
    expectation={"encoder": "fails", "causal_lm": "fails", "vision": "any"},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "fails": Remedy(
            text="Give the model positions: added to embeddings, turned into queries and keys, or as a bias of scores.",
            diff="-x = embed(tokens)\n+x = embed(tokens) + embed_position(position_ids)",
        )
    },
    generators=lambda n: symmetric_generators(n, n - 1),
    last_only=True,
)
