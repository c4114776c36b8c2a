"""No encoding (NoPE): positions are not used.

    score[m, n] = q[m] . k[n] / sqrt(width)

Attention without a mask is permutation-equivariant: f(PX) = P f(X) for every permutation P. Under a causal mask this
holds only for the last token of a single layer; from two layers on, the number of visible tokens gives a token its
position. A causal decoder without encoding therefore does see token order.
Source: Haviv et al. 2022, "Transformer Language Models without Positional Encodings Still Learn Positional
Information", arXiv:2203.16634; Kazemnejad et al. 2023, arXiv:2305.19466.
"""

from __future__ import annotations

from typing import Any, Self

from orderproof.encodings._encoding import Claims, ModelSizes, PositionalEncoding
from orderproof.encodings._registry import register


@register("none", aliases=("nope",))
class NoEncoding(PositionalEncoding):
    """No positional encoding."""

    claims = Claims(site="none", relative=True, symmetric=True)

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The encoding has no options."""
        del sizes
        return cls(**options)
