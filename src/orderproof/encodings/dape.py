"""DAPE: a small network over all heads that adapts each bias to its score.

    b[h](m, n) = B[h](m, n) + f(S(m, n), B(m, n))[h]
    S[h](m, n) = q[m] . k[n] / sqrt(width)  in head h,       f(z) = V leaky(U z + u) + v

B is another encoding's bias; here any bias of n - m alone (ALiBi, KERPLE, T5, Sandwich, ...). f maps the scores and
biases of all heads for one query and key, 2 H numbers, to H numbers; leaky is max(x, x / 100).

b depends on positions only through B: it is relative, it is symmetric if B is, and it is causal only if B is. Heads
are not independent, since f mixes them; and a constant added to one row of S changes the result, unlike in a softmax.
Source: Zheng et al. 2024, "DAPE: Data-Adaptive Positional Encoding for Length Extrapolation", arXiv:2405.14722,
section 3.1.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import nn
from torch.nn import functional

from orderproof.encodings._content_bias import ContentBias
from orderproof.encodings._encoding import AttentionContent, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias import RelativeBias
from orderproof.encodings.checks import check_size
from orderproof.encodings.kerple import KERPLE
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("dape")
class DAPE(ContentBias):
    """A relative bias that a small network adapts to the scores of all heads."""

    heads: int

    def __init__(self, inner: RelativeBias, *, hidden: int = 32) -> None:
        super().__init__()
        if not isinstance(inner, RelativeBias):
            raise EncodingError(f"DAPE: inner must be a RelativeBias, such as KERPLE(8), got {type(inner).__name__}")
        self.heads = inner.heads
        self.hidden = check_size("DAPE", "hidden", hidden)
        self.claims = dataclasses.replace(inner.claims, content_dependent=True, mixes_heads=True)
        self.inner = inner
        self.first = nn.Linear(2 * self.heads, hidden)
        self.second = nn.Linear(hidden, self.heads)

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """KERPLE's logarithm, the best in the paper, with 32 hidden features."""
        return cls(KERPLE(sizes.heads), **options)

    def reset_parameters(self) -> None:
        """Reinitialize the network; the inner bias is not changed."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[torch.Tensor, "*batch query"],
        k_positions: Int[torch.Tensor, "*batch key"],
    ) -> Float[torch.Tensor, "batch head query key"]:
        """The inner bias plus the network's output."""
        scores = content.scale * (content.q @ content.k.mT)
        bias = self.inner.bias(q_positions, k_positions, dtype=scores.dtype)
        both = torch.cat([scores, bias.expand_as(scores)], dim=1).movedim(1, -1)
        wide = both.dtype
        inside = functional.linear(both, self.first.weight.to(wide), self.first.bias.to(wide))
        change = functional.linear(
            functional.leaky_relu(inside), self.second.weight.to(wide), self.second.bias.to(wide)
        )
        return bias + change.movedim(-1, 1)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"hidden={self.hidden}"
