"""OP203 packing: one packed document replaced by anything, and the outputs in the other are unchanged.

    X_s = X'_s for every slot s of one document  implies  f(X)_s = f(X')_s there.

Two documents stand in one row, and either may be replaced: two relations, two walks. The call says so in one of
two ways: by position ids that restart at each document and nothing else (`packed`), or by them and a mask that
lets each document see only itself (`blocked`).
Source: elementary; what training on packed documents relies on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from orderproof.laws.replacement import ReplacementLaw, Slots
from orderproof.record import Remedy
from orderproof.slots import second_document


class Honest(nn.Module):
    """A self-attention layer in which a token sees its own document; position ids tell where one starts."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        if position_ids is None:
            position_ids = torch.arange(x.shape[1]).unsqueeze(0)
        query, key, value = self.qkv(x).chunk(3, -1)
        scores = query @ key.transpose(1, 2)
        return torch.matmul(torch.softmax(scores.masked_fill(~self.together(position_ids), float("-inf")), -1), value)

    def together(self, position_ids: Tensor) -> Tensor:
        """Which tokens see which."""
        document = (position_ids == 0).cumsum(-1)
        return document[..., :, None] == document[..., None, :]


class Faulty(Honest):
    """The same with the documents run together."""

    def together(self, position_ids: Tensor) -> Tensor:
        return torch.ones_like(position_ids[..., :, None] + position_ids[..., None, :], dtype=torch.bool)


@dataclass(frozen=True)
class Packing(ReplacementLaw):
    """See the module's text."""

    document: int = 0  # the one that is replaced

    def relations(self, rows: int) -> tuple[Packing, ...]:
        return (replace(self, document=0), replace(self, document=1))

    def replaced(self, rows: int, tokens: int) -> Slots:
        second = np.arange(tokens) >= second_document(tokens)
        return np.broadcast_to(second == bool(self.document), (rows, tokens))

    def asked(self, rows: int, tokens: int) -> Slots:
        return ~self.replaced(rows, tokens)

    def told(self, tokens: int) -> str:
        return f"replace the {('first', 'second')[self.document]} of two packed documents"


LAW = Packing(
    code="OP203",
    name="packing",
    statement="One of two packed documents replaced by anything: outputs in the other unchanged.",
    expectation={},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "holds": Remedy(
            text="Let a token see its own document only: a mask of blocks, made from where position ids restart.",
            diff="-mask = causal\n+mask = causal & (document[:, :, None] == document[:, None, :])",
        )
    },
    settings=("packed", "blocked"),
)
