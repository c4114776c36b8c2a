"""KERPLE: a learned, sublinear penalty of the distance, from a conditionally positive definite kernel per head.

    b[h](m, n) = -r1[h] ln(1 + r2[h] |m - n|)      kind "log",    r1 > 0,  r2 > 0
    b[h](m, n) = -r1[h] |m - n| ** r2[h]           kind "power",  r1 > 0,  0 < r2 < 2

-|m - n| ** r2 and -ln(1 + r2 |m - n|) are conditionally positive definite for these r1 and r2, so up to a constant
that softmax ignores, exp(b) is a kernel. The bounds are enforced by the parametrization, not by clamping:
r = softplus(raw), and 2 sigmoid(raw) for the power. With power 1 this is ALiBi with learned slopes.
The bias depends only on the distance and not on its direction: it is relative and symmetric.
Source: Chi et al. 2022, "KERPLE", arXiv:2205.09921, section 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias import RelativeBias
from orderproof.encodings.checks import check_size
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Kind = Literal["log", "power"]


@register("kerple")
class KERPLE(RelativeBias):
    """A learned, sublinear penalty of the distance."""

    claims = Claims(site="bias", relative=True, symmetric=True)

    def __init__(self, heads: int, *, kind: Kind = "log") -> None:
        super().__init__()
        self.heads = check_size("KERPLE", "heads", heads)
        if kind not in get_args(Kind):
            raise EncodingError(f"KERPLE: kind must be 'log' or 'power', got {kind!r}")
        self.kind: Kind = kind
        self.raw = nn.Parameter(torch.empty(2, heads))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The logarithmic kernel, the best in the paper."""
        return cls(sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Reinitialize like the authors: r1 uniform in 0 .. 2, r2 in 0 .. 1 ("log") or 0 .. 2 ("power")."""
        with torch.no_grad():
            r1, r2 = torch.rand_like(self.raw).clamp_(min=0.01, max=0.99)
            power = torch.logit(r2)
            self.raw.copy_(
                torch.stack([_inverse_softplus(2 * r1), _inverse_softplus(r2) if self.kind == "log" else power])
            )

    def rates(self) -> Float[Tensor, "2 head"]:
        """r1 and r2 of each head, in float64."""
        raw = self.raw.to(torch.float64)
        second = functional.softplus(raw[1]) if self.kind == "log" else 2 * torch.sigmoid(raw[1])
        return torch.stack([functional.softplus(raw[0]), second])

    def bias_at_distance(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The penalties, in float64."""
        rates = self.rates().view(2, -1, *(1,) * distance.dim())
        far = distance.abs().to(torch.float64)
        return -rates[0] * (torch.log1p(rates[1] * far) if self.kind == "log" else torch.pow(far, rates[1]))

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.heads}, kind={self.kind!r}"


def _inverse_softplus(x: Tensor) -> Tensor:
    """The inverse of softplus."""
    return x + torch.log(-torch.expm1(-x))
