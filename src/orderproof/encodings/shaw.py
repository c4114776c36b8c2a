"""Shaw et al.: a learned vector per distance, added to keys and to values.

    score[m, n] = q[m] . (k[n] + a[clip(n - m)]) / sqrt(width)             clip(d) = max(-D, min(d, D))
    out[m]      = sum_n weight[m, n] (v[n] + c[clip(n - m)])               D = max_distance

a and c (`key_vectors`, `value_vectors`) have 2 D + 1 vectors, shared by all heads. Larger distances use the last
vector, by the encoding's definition. Scores depend only on the distance, so it is relative; it distinguishes before
from after. The sum over c needs the attention weights, which fused kernels do not return; with
``add_to_values=False`` (as in wav2vec2-BERT and Music Transformer) it is left out.
q . a is computed once per distance and then gathered, so that no vector is stored per pair of tokens.
Source: Shaw et al. 2018, "Self-Attention with Relative Position Representations", arXiv:1803.02155, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._content_bias import ContentBias, gather_last
from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings.checks import autocast_disabled, check_flag, check_size, distances

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("shaw")
class Shaw(ContentBias):
    """A learned vector per distance, up to a maximum distance."""

    def __init__(self, head_width: int, *, max_distance: int = 16, add_to_values: bool = True) -> None:
        super().__init__()
        self.head_width = check_size("Shaw", "head_width", head_width)
        self.max_distance = check_size("Shaw", "max_distance", max_distance)
        check_flag("Shaw", "add_to_values", add_to_values)
        self.key_vectors = nn.Parameter(torch.empty(2 * max_distance + 1, head_width))
        self.value_vectors = nn.Parameter(torch.empty(2 * max_distance + 1, head_width)) if add_to_values else None
        self.claims = Claims(
            site="bias", relative=True, symmetric=False, content_dependent=True, adds_to_values=add_to_values
        )
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """Distances up to 16, as in the paper's base model."""
        return cls(sizes.head_width, **options)

    def reset_parameters(self) -> None:
        """Reinitialize the vectors: Xavier uniform."""
        for vectors in (self.key_vectors, self.value_vectors):
            if vectors is not None:
                nn.init.xavier_uniform_(vectors)

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The query's product with the vector of each distance."""
        products = content.scale * (content.q @ self.key_vectors.to(content.q.dtype).T)
        return gather_last(products, self._table_index(q_positions, k_positions))

    def value_bias(
        self,
        weights: Float[Tensor, "batch head query key"],
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query value_width"]:
        """The sum of the distances' vectors, weighted by attention."""
        if self.value_vectors is None:
            return super().value_bias(weights, q_positions, k_positions)
        index = self._table_index(q_positions, k_positions).expand(weights.shape)
        by_distance = weights.new_zeros(*weights.shape[:-1], 2 * self.max_distance + 1).scatter_add(-1, index, weights)
        with autocast_disabled(weights):
            return by_distance @ self.value_vectors.to(weights.dtype)

    def _table_index(self, q_positions: Tensor, k_positions: Tensor) -> Int[Tensor, "batch 1 query key"]:
        return (
            distances(q_positions, k_positions).clamp(-self.max_distance, self.max_distance).unsqueeze(1)
            + self.max_distance
        )

    def extra_repr(self) -> str:
        """The constructor arguments."""
        values = "" if self.value_vectors is not None else ", add_to_values=False"
        return f"{self.head_width}, max_distance={self.max_distance}{values}"
