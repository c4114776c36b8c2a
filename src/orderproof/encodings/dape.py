"""DAPE: a small network over all heads changes each bias by the score it is added to.

    b[h](m, n) = B[h](m, n) + f(S(m, n), B(m, n))[h]
    S[h](m, n) = q[m] . k[n] / sqrt(width)  in head h,       f(z) = V leaky(U z + u) + v

B is another encoding's bias; here any whose bias is a function of n - m alone (ALiBi, KERPLE, T5, Sandwich, ...).
f reads the scores and biases of all heads for one query and key, 2 H numbers, and gives H; leaky is max(x, x / 100).

b sees positions through B only, so what B does not tell apart b does not either: it is relative, it is symmetric where
B is, and for causal attention only where B is. What does not follow: that a head is on its own, since f mixes heads;
nor that a constant added to one row of S changes nothing, as it would in a softmax.
Source: Zheng et al. 2024, "DAPE: Data-Adaptive Positional Encoding for Length Extrapolation", arXiv:2405.14722,
section 3.1.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

import torch
from torch import nn
from torch.nn import functional

from orderproof.encodings._content import ContentBias
from orderproof.encodings._encoding import Content, Sizes
from orderproof.encodings._offset import OffsetBias
from orderproof.encodings._operands import check_size
from orderproof.encodings._registry import register
from orderproof.encodings.kerple import Kerple
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("dape")
class Dape(ContentBias):
    """A bias that a small network adapts to the scores of all heads."""

    heads: int

    def __init__(self, inner: OffsetBias, *, hidden: int = 32) -> None:
        super().__init__()
        if not isinstance(inner, OffsetBias):
            raise EncodingError(f"Dape: inner must be a bias of the distance, such as Kerple(8), got {inner!r}")
        self.heads = inner.heads
        self.hidden = check_size("Dape", "hidden", hidden)
        self.claims = dataclasses.replace(inner.claims, content=True, mixes_heads=True)
        self.inner = inner
        self.first = nn.Linear(2 * self.heads, hidden)
        self.second = nn.Linear(hidden, self.heads)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """Over KERPLE's logarithm, which the paper found best, with its 32 hidden features."""
        return cls(Kerple(sizes.heads))

    def reset_parameters(self) -> None:
        """Draw the network anew; the inner bias draws its own."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def worked_out(
        self,
        content: Content,
        q_positions: Int[torch.Tensor, "*batch query"],
        k_positions: Int[torch.Tensor, "*batch key"],
    ) -> Float[torch.Tensor, "batch head query key"]:
        """The inner bias and what the network adds to it."""
        scores = content.scale * (content.q @ content.k.mT)
        bias = self.inner.bias(q_positions, k_positions, dtype=scores.dtype)
        both = torch.cat([scores, bias.expand_as(scores)], dim=1).movedim(1, -1)
        wide = both.dtype
        inside = functional.linear(both, self.first.weight.to(wide), self.first.bias.to(wide))
        found = functional.linear(functional.leaky_relu(inside), self.second.weight.to(wide), self.second.bias.to(wide))
        return bias + found.movedim(-1, 1)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"hidden={self.hidden}"
