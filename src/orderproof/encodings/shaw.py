"""Shaw's relative positions: a trained vector for each distance, added to the key and to the value.

    score[m, n] = q[m] . (k[n] + a[clip(n - m)]) / sqrt(width)             clip(d) = max(-reach, min(d, reach))
    out[m]      = sum_n weight[m, n] (v[n] + c[clip(n - m)])

a and c (`key_vectors`, `value_vectors`) hold 2 reach + 1 vectors that all heads share. Farther tokens share the vector
of the farthest: that is the encoding's own definition, not a table that ran out. Scores see the distance only, so it
is relative; it tells before from after. The sum over c needs the attention weights themselves, which fused kernels do
not give; with ``values=False`` (as in wav2vec2-BERT and Music Transformer) it is left out.
q . a is worked out for every distance first and then looked up, so that no vector is held for each pair.
Source: Shaw et al. 2018, "Self-Attention with Relative Position Representations", arXiv:1803.02155, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._content import ContentBias, looked_up
from orderproof.encodings._encoding import Claims, Content, Sizes
from orderproof.encodings._operands import check_flag, check_size, distances, exactly
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("shaw")
class Shaw(ContentBias):
    """A trained vector for each distance up to a reach."""

    def __init__(self, head_width: int, *, reach: int = 16, values: bool = True) -> None:
        super().__init__()
        self.head_width = check_size("Shaw", "head_width", head_width)
        self.reach = check_size("Shaw", "reach", reach)
        check_flag("Shaw", "values", values)
        self.key_vectors = nn.Parameter(torch.empty(2 * reach + 1, head_width))
        self.value_vectors = nn.Parameter(torch.empty(2 * reach + 1, head_width)) if values else None
        self.claims = Claims(site="bias", relative=True, symmetric=False, content=True, values=values)
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The reach of the paper's base model, 16."""
        return cls(sizes.head_width)

    def reset_parameters(self) -> None:
        """Draw the vectors anew, as a linear layer of their size."""
        for vectors in (self.key_vectors, self.value_vectors):
            if vectors is not None:
                nn.init.xavier_uniform_(vectors)

    def worked_out(
        self,
        content: Content,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The query's product with the vector of each distance, looked up."""
        products = content.scale * (content.q @ self.key_vectors.to(content.q.dtype).T)
        return looked_up(products, self._row(q_positions, k_positions))

    def values(
        self,
        weights: Float[Tensor, "batch head query key"],
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query value_width"]:
        """The vectors of the distances, mixed by how much weight stands at each."""
        if self.value_vectors is None:
            return super().values(weights, q_positions, k_positions)
        index = self._row(q_positions, k_positions).expand(weights.shape)
        along = weights.new_zeros(*weights.shape[:-1], 2 * self.reach + 1).scatter_add(-1, index, weights)
        with exactly(weights):
            return along @ self.value_vectors.to(weights.dtype)

    def _row(self, q_positions: Tensor, k_positions: Tensor) -> Int[Tensor, "batch 1 query key"]:
        return distances(q_positions, k_positions).clamp(-self.reach, self.reach).unsqueeze(1) + self.reach

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        values = "" if self.value_vectors is not None else ", values=False"
        return f"{self.head_width}, reach={self.reach}{values}"
