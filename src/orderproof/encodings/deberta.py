"""DeBERTa's disentangled attention: score what a query holds against where a key is, and the other way round.

    score[m, n] = ( q[m] . k[n]  +  q[m] . K[h, d]  +  k[n] . Q[h, d] ) / sqrt(3 head_width)

    d = bucket(m - n) + span          K = `keys`, Q = `queries`: 2 span vectors of each head

With B = span and E = B/2, buckets are exact up to E and then grow, the same on both sides:

    bucket(x) = x                                                                          for |x| <= E
    bucket(x) = sign(x) (E + ceil((E - 1) ln(|x| / E) / ln((max_distance - 1) / E)))       for |x| >  E

and end at -B and B - 1, in which all that is farther lies. The first |x| in bucket E + j is decided once, in whole
numbers: |x| ** (E - 1) > E ** (E - j) (max_distance - 1) ** (j - 1).
Scores see the distance only, so it is relative; it tells before from after. The paper writes d(n, m) in the third
term; the authors' code and all weights trained with it have d(m, n) there, and so has this.
In a model K and Q are its position table times the projections of keys and queries: put those products in.
Scores are divided by sqrt(3 head_width) because they are sums of three: `scale` says so.
Source: He et al. 2020, "DeBERTa", arXiv:2006.03654, section 3.1; log buckets: He et al. 2021, "DeBERTaV3",
arXiv:2111.09543, and the authors' code.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._content import ContentBias, looked_up
from orderproof.encodings._encoding import Claims, Content, Sizes
from orderproof.encodings._operands import check_size, constant, distances
from orderproof.encodings._registry import register
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("deberta")
class Deberta(ContentBias):
    """Trained vectors for buckets of distances, met by queries and by keys."""

    claims = Claims(site="bias", relative=True, symmetric=False, content=True)

    def __init__(self, heads: int, head_width: int, *, span: int = 256, max_distance: int = 512) -> None:
        super().__init__()
        self.heads = check_size("Deberta", "heads", heads)
        self.head_width = check_size("Deberta", "head_width", head_width)
        self.span = check_size("Deberta", "span", span, even=True)
        self.max_distance = check_size("Deberta", "max_distance", max_distance)
        if span < 4 or max_distance <= span // 2 + 1:
            need = "a span of 4 or more, and max_distance above span / 2 + 1"
            raise EncodingError(f"Deberta: expected {need}, got span={span}, max_distance={max_distance}")
        self.thresholds = thresholds(span // 2, max_distance - 1)
        self.keys = nn.Parameter(torch.empty(heads, 2 * span, head_width))
        self.queries = nn.Parameter(torch.empty(heads, 2 * span, head_width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The buckets of the released models."""
        return cls(sizes.heads, sizes.head_width)

    def reset_parameters(self) -> None:
        """Draw the vectors anew: normal, deviation 0.02."""
        nn.init.normal_(self.keys, std=0.02)
        nn.init.normal_(self.queries, std=0.02)

    def scale(self, head_width: int) -> float:
        """One over the root of three widths, for a sum of three products."""
        return 1 / math.sqrt(3 * head_width)

    def bucket(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The bucket of each distance m - n from key to query, from -span to span - 1."""
        far, exact = distance.abs(), self.span // 2
        first = constant(self.thresholds, distance.device, dtype=torch.int64)
        grown = exact + torch.bucketize(far, first, right=True)
        return (distance.sign() * torch.where(far <= exact, far, grown)).clamp(max=self.span - 1)

    def worked_out(
        self,
        content: Content,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """Both products for every bucket, looked up."""
        q, k = content.q, content.k
        row = (self.bucket(-distances(q_positions, k_positions)) + self.span).unsqueeze(1)
        to_position = looked_up(q @ self.keys.to(q.dtype).mT, row)
        from_position = looked_up(k @ self.queries.to(q.dtype).mT, row.mT).mT
        return content.scale * (to_position + from_position)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.heads}, {self.head_width}, span={self.span}, max_distance={self.max_distance}"


def thresholds(exact: int, last: int) -> tuple[int, ...]:
    """The smallest distance in each bucket after the exact ones."""
    steps = exact - 1
    found = []
    x = exact
    for j in range(1, exact + 1):
        limit = exact ** (steps - (j - 1)) * last ** (j - 1)
        low, high = x, last + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if middle**steps > limit else (middle + 1, high)
        x = low
        found.append(x)
    return tuple(found)
