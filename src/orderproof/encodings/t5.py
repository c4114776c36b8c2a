"""T5 bias: a learned number per head and bucket of the distance.

    b[h](m, n) = weight[bucket(n - m), h]

Let x be the distance and B the number of buckets, E = B/2 of them exact. Causal: x = max(m - n, 0),

    bucket = x                                                             for x < E
    bucket = min(B - 1, E + floor((B - E) ln(x / E) / ln(max_distance / E)))   for x >= E

Bidirectional: B is halved, x = |m - n|, and keys after the query use the other half of the buckets.
x reaches bucket E + j if x^r E^j >= E^r max_distance^j, r = B - E, which is computed in integer arithmetic.

The bias depends only on the distance, so it is relative. In the causal version all later keys share bucket 0, so it is
defined for causal attention only. T5 does not divide scores by sqrt(head_width): with weights from T5, call attention
with scale=1.0. All layers share one bias.
Source: Raffel et al. 2019, "Exploring the Limits of Transfer Learning", arXiv:1910.10683, section 2.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._buckets import first_integer
from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias import RelativeBias
from orderproof.encodings.checks import check_flag, check_size, device_constant
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("t5")
class T5Bias(RelativeBias):
    """A learned number per head and bucket of distances."""

    def __init__(
        self, heads: int, *, bidirectional: bool, buckets: int = 32, max_distance: int = 128, initial_std: float = 1.0
    ) -> None:
        super().__init__()
        self.heads = check_size("T5Bias", "heads", heads)
        self.buckets = check_size("T5Bias", "buckets", buckets, even=True)
        self.bidirectional = check_flag("T5Bias", "bidirectional", bidirectional)
        self.max_distance = check_size("T5Bias", "max_distance", max_distance)
        self.buckets_per_direction = buckets // 2 if bidirectional else buckets
        self.exact_buckets = self.buckets_per_direction // 2
        if self.exact_buckets < 1 or max_distance <= self.exact_buckets:
            need = "4 buckets or more when bidirectional, and max_distance above the exact buckets"
            raise EncodingError(f"T5Bias: expected {need}, got buckets={buckets}, max_distance={max_distance}")
        self.thresholds = log_bucket_thresholds(self.buckets_per_direction, self.exact_buckets, max_distance)
        self.claims = Claims(site="bias", relative=True, symmetric=False, causal_only=not bidirectional)
        if not 0 < initial_std < math.inf:
            raise EncodingError(f"T5Bias: initial_std must be a positive number, got {initial_std!r}")
        self.initial_std = initial_std
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The causal version for a causal model, the bidirectional one otherwise.

        The weights start with standard deviation 1/sqrt(width), as in transformers.
        """
        defaults = {"bidirectional": not sizes.causal, "initial_std": sizes.width**-0.5}
        return cls(sizes.heads, **{**defaults, **options})

    def reset_parameters(self) -> None:
        """Reinitialize the weights: normal, with standard deviation ``initial_std``."""
        nn.init.normal_(self.weight, std=self.initial_std)

    def bucket(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The bucket of each distance n - m from query to key."""
        back = distance.abs() if self.bidirectional else (-distance).clamp(min=0)
        thresholds = device_constant(self.thresholds, distance.device, dtype=torch.int64)
        grown = torch.bucketize(back, thresholds, right=True)
        bucket = torch.where(back < self.exact_buckets, back, self.exact_buckets + grown)
        return bucket + self.buckets_per_direction * (distance > 0) if self.bidirectional else bucket

    def bias_at_distance(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The weight of each distance's bucket."""
        return functional.embedding(self.bucket(distance), self.weight).movedim(-1, 0)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        direction = f"bidirectional={self.bidirectional}"
        return f"{self.heads}, {direction}, buckets={self.buckets}, max_distance={self.max_distance}"


def log_bucket_thresholds(buckets: int, exact: int, max_distance: int) -> tuple[int, ...]:
    """The smallest distance in each bucket after the first inexact one."""
    r = buckets - exact
    thresholds = [exact]
    for j in range(1, r):
        bound = exact ** (r - j) * max_distance**j
        thresholds.append(first_integer(lambda x, bound=bound: x**r >= bound, thresholds[-1], max_distance))  # type: ignore[misc]
    return tuple(thresholds[1:])
