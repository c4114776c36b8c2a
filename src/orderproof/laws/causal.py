"""OP201 causal: replace the tokens from j on by anything, and the outputs before j are unchanged, for every j.

    X_i = X'_i for i < j  implies  f(X)_i = f(X')_i for i < j.

The prover carries, for each element, the largest token index it depends on; one walk settles every j.
Source: elementary; what a language model trained on the next token relies on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from orderproof.laws.law import Axis, Change, InfluenceLaw, TokenDim, along, spread
from orderproof.prover.fact import ALWAYS, NEVER, Fact, Levels, Shape, uniform
from orderproof.prover.move import STILL
from orderproof.record import Remedy


class Honest(nn.Module):
    """A causal self-attention layer."""

    diagonal = 1

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(self.diagonal)
        scores = (query @ key.transpose(1, 2)).masked_fill(future, float("-inf"))
        return torch.matmul(torch.softmax(scores, -1), value)


class Faulty(Honest):
    """The same with a mask that is off by one: each token sees the next."""

    diagonal = 2


@dataclass(frozen=True)
class Causal(InfluenceLaw):
    """See the module's text."""

    def input_fact(self, shape: Shape, axis: Axis) -> Fact:
        rank = len(shape)
        moves = (STILL,) * rank
        if axis is None:
            return Fact(shape, moves, uniform(rank, NEVER))
        (axis,) = along(axis)
        level = np.arange(shape[axis], dtype=np.int64).reshape([-1 if d == axis else 1 for d in range(rank)])
        return Fact(shape, moves, level)

    def shortfall(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int, rows: int | None = None) -> str | None:
        token = dims[0]
        place = np.arange(fact.shape[token.dim]) - token.offset
        allowed = np.maximum(place, NEVER).reshape([-1 if d == token.dim else 1 for d in range(len(fact.shape))])
        over = fact.level > allowed
        if not over.any():
            return None
        where = np.argwhere(np.broadcast_to(over, np.broadcast_shapes(over.shape, allowed.shape)))[0]
        i = int(where[token.dim]) - token.offset
        level = int(np.broadcast_to(fact.level, over.shape)[tuple(where)])
        what = "anything" if level >= ALWAYS else f"token {level}"
        return f"the output at token {i} may depend on {what}"

    def allowed(self, shape: Shape, tokens: int, rows: int) -> Levels | None:
        dims = [d for d, size in enumerate(shape) if size == tokens]
        if len(dims) != 1:
            return None
        return np.arange(tokens).reshape([-1 if d == dims[0] else 1 for d in range(len(shape))])

    def changes(self, tokens: int, rows: int = 1) -> Iterator[Change]:
        for k in spread(tokens - 1):
            cut = tokens - 1 - k
            yield Change(f"replace the tokens from {cut} on", cut=cut)

    def compare(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: Change
    ) -> tuple[Tensor, Tensor]:
        assert change.cut is not None
        token = dims[0]
        end = change.cut + token.offset
        return first.narrow(token.dim, 0, end), second.narrow(token.dim, 0, end)


LAW = Causal(
    code="OP201",
    name="causal",
    statement="Tokens from j on replaced by anything: outputs before j unchanged, for every j.",
    expectation={"encoder": "fails", "causal_lm": "holds", "vision": "fails"},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "holds": Remedy(
            text="Hide later tokens before the softmax, on every backend, with and without a padding mask.",
            diff="-scaled_dot_product_attention(q, k, v, attn_mask=mask)\n"
            "+scaled_dot_product_attention(q, k, v, attn_mask=mask & torch.ones_like(mask).tril())",
        ),
        "fails": Remedy(
            text="Let tokens see later ones: a mask that should hide pads alone hides what is to come.",
            diff="-mask = create_causal_mask(...)\n+mask = create_bidirectional_mask(...)",
        ),
    },
)
