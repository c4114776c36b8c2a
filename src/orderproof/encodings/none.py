"""No encoding (NoPE): nothing is added and nothing is turned.

    score[m, n] = q[m] . k[n] / sqrt(width)

so attention sees the set of tokens and not their order: f(PX) = P f(X) for every permutation P. Under a causal
mask that is true of one layer's last token only; from two layers on, how many tokens a token could see tells
its place. What does not follow: that a causal decoder without encodings is blind to order.
Source: Haviv et al. 2022, "Transformer Language Models without Positional Encodings Still Learn Positional
Information", arXiv:2203.16634; Kazemnejad et al. 2023, arXiv:2305.19466.
"""

from __future__ import annotations

from typing import Self

from orderproof.encodings._encoding import Claims, PositionalEncoding, Sizes
from orderproof.encodings._registry import register


@register("none", called=("nope",))
class NoEncoding(PositionalEncoding):
    """Order left out on purpose."""

    claims = Claims(site="none", relative=True, symmetric=True)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The same for every model."""
        del sizes
        return cls()
