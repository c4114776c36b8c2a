"""CoPE: count not tokens but those that the query finds worth counting.

    g[m, t] = sigmoid(scale q[m] . k[t])  for keys t that m may see, 0 for others        gates
    c[m, n] = sum of g[m, t] over t from n to m                                          the count, at most limit - 1
    b(m, n) = (1 - r) q[m] . e[floor c] + r q[m] . e[ceil c],     r = c - floor c

e holds ``limit`` vectors that all heads share. With gates of 0 and 1 the count is a number of words, of sentences, of
whatever the query looks for. Positions say the order in which keys are counted and nothing else, so adding a constant
to all changes nothing: relative. Counts past the last vector share it: that is the encoding's own definition.
"From n to m" has a meaning for keys that do not come after the query: causal only. Keys are hidden before they are
counted; a gate on a hidden key would let a query see it. Decoding needs every key, which a cache holds.
Gates see the scaled score and b is not scaled, as in the authors' code (their formula has no scale at all).
Source: Golovneva et al. 2024, "Contextual Position Encoding", arXiv:2405.18719, section 4 and appendix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._content import ContentBias, looked_up, sum_after
from orderproof.encodings._encoding import Claims, Content, Sizes
from orderproof.encodings._operands import check_size
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("cope")
class Cope(ContentBias):
    """A trained vector for each count of gated tokens."""

    claims = Claims(site="bias", relative=True, symmetric=False, causal_only=True, content=True)

    def __init__(self, head_width: int, *, limit: int = 64) -> None:
        super().__init__()
        self.head_width = check_size("Cope", "head_width", head_width)
        self.limit = check_size("Cope", "limit", limit)
        self.weight = nn.Parameter(torch.empty(limit, head_width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """Sixty-four counts, as in the paper."""
        return cls(sizes.head_width)

    def reset_parameters(self) -> None:
        """Begin without positions: all vectors zero, as the authors do."""
        nn.init.zeros_(self.weight)

    def worked_out(
        self,
        content: Content,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The query's product with the two vectors around each count, mixed."""
        del q_positions  # who comes before whom stands in content.visible and in the keys' positions
        q, k = content.q, content.k
        gates = torch.sigmoid(content.scale * (q @ k.mT))
        if content.visible is not None:
            gates = gates.masked_fill(~content.visible, 0.0)
        count = sum_after(gates, k_positions, own=True).clamp(max=self.limit - 1)
        below, above = count.floor(), count.ceil()
        products = q @ self.weight.to(q.dtype).T
        low, high = (looked_up(products, x.long()) for x in (below, above))
        return torch.lerp(low, high, count - below)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.head_width}, limit={self.limit}"
