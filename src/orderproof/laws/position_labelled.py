"""OP104 position_labelled: tokens and their position ids permuted together, and the output is permuted alike.

    f(P X, P p) = P f(X, p) for every permutation P.

Then order enters only through the position ids: the place at which a token is stored says nothing. A causal model
is given its mask as data, and the mask is permuted on both sides, P M P^T: who sees whom moves with the tokens.
Source: elementary; Lee et al. 2019, "Set Transformer", arXiv:1810.00825, for the part without positions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.laws.law import PermutationLaw
from orderproof.permutations import symmetric_generators


class Honest(nn.Module):
    """A self-attention layer whose tokens carry a table's row for their position id."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        if position_ids is None:
            position_ids = torch.arange(x.shape[1]).unsqueeze(0)
        query, key, value = self.qkv(x + self.table(self.places(position_ids))).chunk(3, -1)
        return torch.matmul(torch.softmax(query @ key.transpose(1, 2), -1), value)

    def places(self, position_ids: Tensor) -> Tensor:
        """The rows of the table to take."""
        return position_ids


class Faulty(Honest):
    """The same that counts for itself, whatever position ids it is given."""

    def places(self, position_ids: Tensor) -> Tensor:
        return torch.arange(position_ids.shape[-1]).expand_as(position_ids)


LAW = PermutationLaw(
    code="OP104",
    name="position_labelled",
    statement="Tokens and position ids permuted together: outputs permuted alike.",
    expectation={},
    honest=Honest,
    faulty=Faulty,
    settings=("labelled",),
    generators=symmetric_generators,
)
