"""CoPE: positions are counts of the tokens that the query selects with a gate.

    g[m, t] = sigmoid(scale q[m] . k[t])  for keys t visible to m, 0 for others          gates
    c[m, n] = sum of g[m, t] over t from n to m                                          count, at most limit - 1
    b(m, n) = (1 - r) q[m] . e[floor c] + r q[m] . e[ceil c],     r = c - floor c

e has ``limit`` vectors, shared by all heads. With gates of 0 and 1 the count is a number of words, of sentences, or of
anything else that the query selects. Positions only order the keys, so adding a constant to all of them changes
nothing: the encoding is relative. Larger counts use the last vector, by the encoding's definition.
"From n to m" is defined only for keys at or before the query: causal only. Keys are masked before they are counted; a
gate on a masked key would leak it to the query. Decoding needs every key, which the KV cache has.
Gates use the scaled score and b is not scaled, as in the authors' code (their formula has no scale).
Source: Golovneva et al. 2024, "Contextual Position Encoding", arXiv:2405.18719, section 4 and appendix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._content_bias import ContentBias, gather_last, suffix_sum
from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings.checks import check_size

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("cope")
class CoPE(ContentBias):
    """A learned vector for each count of gated tokens."""

    claims = Claims(site="bias", relative=True, symmetric=False, causal_only=True, content_dependent=True)

    def __init__(self, head_width: int, *, limit: int = 64) -> None:
        super().__init__()
        self.head_width = check_size("CoPE", "head_width", head_width)
        self.limit = check_size("CoPE", "limit", limit)
        self.weight = nn.Parameter(torch.empty(limit, head_width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """64 counts, as in the paper."""
        return cls(sizes.head_width, **options)

    def reset_parameters(self) -> None:
        """Initialize all vectors to zero, like the authors."""
        nn.init.zeros_(self.weight)

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The query's products with the vectors of the two nearest counts, interpolated."""
        del q_positions  # content.visible and the keys' positions define the order
        q, k = content.q, content.k
        gates = torch.sigmoid(content.scale * (q @ k.mT))
        if content.visible is not None:
            gates = gates.masked_fill(~content.visible, 0.0)
        count = suffix_sum(gates, k_positions, inclusive=True).clamp(max=self.limit - 1)
        below, above = count.floor(), count.ceil()
        products = q @ self.weight.to(q.dtype).T
        low, high = (gather_last(products, x.long()) for x in (below, above))
        return torch.lerp(low, high, count - below)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.head_width}, limit={self.limit}"
