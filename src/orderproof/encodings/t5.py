"""T5 bias: add to each score a trained number, looked up by the head and the bucket of the distance.

    b[h](m, n) = weight[bucket(n - m), h]

Let x be the distance and B the number of buckets, E = B/2 of them exact. Looking back only: x = max(m - n, 0),

    bucket = x                                                             for x < E
    bucket = min(B - 1, E + floor((B - E) ln(x / E) / ln(max_distance / E)))   for x >= E

Both ways: B is halved, x = |m - n|, and keys after the query use the other half of the buckets.
x reaches bucket E + j where x^r E^j >= E^r max_distance^j, r = B - E: that is decided once, in whole numbers.

b sees the distance only, so it is relative. Looking back only, all later keys share bucket 0: that is a bias for
causal attention and means nothing elsewhere. T5 does not divide its scores by sqrt(head_width): with weights from
T5, call attention with scale=1.0. All layers share one bias.
Source: Raffel et al. 2019, "Exploring the Limits of Transfer Learning", arXiv:1910.10683, section 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._offset import OffsetBias
from orderproof.encodings._operands import check_flag, check_size, constant
from orderproof.encodings._registry import register
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("t5")
class T5Bias(OffsetBias):
    """A trained number for each bucket of distances."""

    def __init__(self, heads: int, *, bidirectional: bool, buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.heads = check_size("T5Bias", "heads", heads)
        self.buckets = check_size("T5Bias", "buckets", buckets, even=True)
        self.bidirectional = check_flag("T5Bias", "bidirectional", bidirectional)
        self.max_distance = check_size("T5Bias", "max_distance", max_distance)
        self.one_way = buckets // 2 if bidirectional else buckets
        self.exact = self.one_way // 2
        if self.exact < 1 or max_distance <= self.exact:
            need = "4 buckets or more when bidirectional, and max_distance above the exact buckets"
            raise EncodingError(f"T5Bias: expected {need}, got buckets={buckets}, max_distance={max_distance}")
        self.thresholds = thresholds(self.one_way, self.exact, max_distance)
        self.claims = Claims(site="bias", relative=True, symmetric=False, causal_only=not bidirectional)
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """Looking back only in a causal model, both ways in any other."""
        return cls(sizes.heads, bidirectional=not sizes.causal)

    def reset_parameters(self) -> None:
        """Draw the numbers anew: normal, deviation 1."""
        nn.init.normal_(self.weight)

    def bucket(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The bucket of each distance n - m from query to key."""
        back = distance.abs() if self.bidirectional else (-distance).clamp(min=0)
        thresholds = constant(self.thresholds, distance.device, dtype=torch.int64)
        grown = torch.bucketize(back, thresholds, right=True)
        found = torch.where(back < self.exact, back, self.exact + grown)
        return found + self.one_way * (distance > 0) if self.bidirectional else found

    def at(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The trained numbers, as they are."""
        return functional.embedding(self.bucket(distance), self.weight).movedim(-1, 0)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        ways = f"bidirectional={self.bidirectional}"
        return f"{self.heads}, {ways}, buckets={self.buckets}, max_distance={self.max_distance}"


def thresholds(buckets: int, exact: int, max_distance: int) -> tuple[int, ...]:
    """The smallest distance in each bucket after the first inexact one."""
    r = buckets - exact
    found = []
    x = exact
    for j in range(1, r):
        wanted = exact ** (r - j) * max_distance**j
        low, high = x, max_distance
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if middle**r >= wanted else (middle + 1, high)
        x = low
        found.append(x)
    return tuple(found)
