"""DeBERTa: disentangled attention, with content-to-position and position-to-content scores.

    score[m, n] = ( q[m] . k[n]  +  q[m] . K[h, d]  +  k[n] . Q[h, d] ) / sqrt(3 head_width)

    d = bucket(m - n) + span          K = `keys`, Q = `queries`: 2 span vectors per head

With B = span and E = B/2, buckets are exact up to E and then grow, symmetrically in both directions:

    bucket(x) = x                                                                          for |x| <= E
    bucket(x) = sign(x) (E + ceil((E - 1) ln(|x| / E) / ln((max_distance - 1) / E)))       for |x| >  E

clamped to -B .. B - 1. The first |x| in bucket E + j is computed in integer arithmetic:
|x| ** (E - 1) > E ** (E - j) (max_distance - 1) ** (j - 1).
Scores depend only on the distance, so it is relative; it distinguishes before from after. The paper has d(n, m) in the
third term; the authors' code and all published weights have d(m, n), and so does this.
In a model, K and Q are its position table times the key and query projections: load these products.
Scores are sums of three products and therefore divided by sqrt(3 head_width) (`default_scale`).
Source: He et al. 2020, "DeBERTa", arXiv:2006.03654, section 3.1; log buckets: He et al. 2021, "DeBERTaV3",
arXiv:2111.09543, and the authors' code.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._buckets import first_integer
from orderproof.encodings._content_bias import ContentBias, gather_last
from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings.checks import check_size, device_constant, distances
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("deberta")
class DeBERTa(ContentBias):
    """Learned vectors per bucket of distances, multiplied with queries and with keys."""

    claims = Claims(site="bias", relative=True, symmetric=False, content_dependent=True)

    def __init__(self, heads: int, head_width: int, *, span: int = 256, max_distance: int = 512) -> None:
        super().__init__()
        self.heads = check_size("DeBERTa", "heads", heads)
        self.head_width = check_size("DeBERTa", "head_width", head_width)
        self.span = check_size("DeBERTa", "span", span, even=True)
        self.max_distance = check_size("DeBERTa", "max_distance", max_distance)
        if span < 4 or max_distance <= span // 2 + 1:
            need = "a span of 4 or more, and max_distance above span / 2 + 1"
            raise EncodingError(f"DeBERTa: expected {need}, got span={span}, max_distance={max_distance}")
        self.thresholds = log_bucket_thresholds(span // 2, max_distance - 1)
        self.keys = nn.Parameter(torch.empty(heads, 2 * span, head_width))
        self.queries = nn.Parameter(torch.empty(heads, 2 * span, head_width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The buckets of the released models."""
        return cls(sizes.heads, sizes.head_width, **options)

    def reset_parameters(self) -> None:
        """Reinitialize the vectors: normal, standard deviation 0.02."""
        nn.init.normal_(self.keys, std=0.02)
        nn.init.normal_(self.queries, std=0.02)

    def default_scale(self, head_width: int) -> float:
        """1 / sqrt(3 head_width), for a sum of three products."""
        return 1 / math.sqrt(3 * head_width)

    def bucket(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The bucket of each distance m - n from key to query, from -span to span - 1."""
        far, exact = distance.abs(), self.span // 2
        first = device_constant(self.thresholds, distance.device, dtype=torch.int64)
        grown = exact + torch.bucketize(far, first, right=True)
        return (distance.sign() * torch.where(far <= exact, far, grown)).clamp(max=self.span - 1)

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """Both products, computed per bucket and gathered by distance."""
        q, k = content.q, content.k
        row = (self.bucket(-distances(q_positions, k_positions)) + self.span).unsqueeze(1)
        to_position = gather_last(q @ self.keys.to(q.dtype).mT, row)
        from_position = gather_last(k @ self.queries.to(q.dtype).mT, row.mT).mT
        return content.scale * (to_position + from_position)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.heads}, {self.head_width}, span={self.span}, max_distance={self.max_distance}"


def log_bucket_thresholds(exact: int, last: int) -> tuple[int, ...]:
    """The smallest distance in each bucket after the exact ones."""
    steps = exact - 1
    thresholds = [exact]
    for j in range(1, exact + 1):
        bound = exact ** (steps - (j - 1)) * last ** (j - 1)
        thresholds.append(first_integer(lambda x, bound=bound: x**steps > bound, thresholds[-1], last + 1))  # type: ignore[misc]
    return tuple(thresholds[1:])
