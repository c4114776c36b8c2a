"""Transformer-XL: scores with a sinusoid of the distance and two learned vectors per head.

    score[m, n] = ( (q[m] + u) . k[n]  +  (q[m] + v) . W R(m - n) ) / sqrt(head_width)

    R(d) = (sin(d f), cos(d f)),   f[i] = 10000 ** (-2i / width),   i = 0 .. width/2 - 1

u and v are vectors and W a matrix [head_width, width] per head. Scores depend only on the distance, so it is relative;
it distinguishes before from after (sin is odd).
With g = W^T (q[m] + v), g . R(m - n) is, pair by pair, g rotated by the angle m f times (cos(n f), sin(n f)):

    g_s sin(m f - n f) + g_c cos(m f - n f)
        = cos(n f) (g_s sin(m f) + g_c cos(m f))  +  sin(n f) (g_c sin(m f) - g_s cos(m f))

so one product of queries and keys computes it. This needs no sinusoid per distance and no shifting of matrix rows,
which is off by one whenever there are more keys than queries. Angles are float64, as in rotary encodings.
The paper has one W per layer. Here all layers share an encoding; use one per layer (`layer_patterns`) if that matters.
Source: Dai et al. 2019, "Transformer-XL", arXiv:1901.02860, section 3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._content_bias import ContentBias
from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes
from orderproof.encodings._frequencies import cos_sin
from orderproof.encodings._registry import register
from orderproof.encodings.checks import check_size
from orderproof.encodings.schedules import geometric_frequencies
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("transformer_xl", aliases=("xl",))
class TransformerXL(ContentBias):
    """A learned function of sinusoids of the distance."""

    claims = Claims(site="bias", relative=True, symmetric=False, content_dependent=True)
    heads: int
    head_width: int

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width = check_size("TransformerXL", "width", width, even=True)
        self.heads = check_size("TransformerXL", "heads", heads)
        if width % heads:
            raise EncodingError(f"TransformerXL: heads must divide width={width}, got {heads}")
        self.head_width = width // heads
        self.spectrum = geometric_frequencies(width=width, base=10_000.0)
        self.u = nn.Parameter(torch.empty(heads, self.head_width))
        self.v = nn.Parameter(torch.empty(heads, self.head_width))
        self.weight = nn.Parameter(torch.empty(heads, self.head_width, width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """Sinusoids of the model's width."""
        return cls(sizes.width, sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Reinitialize all parameters: normal, standard deviation 0.02, like the authors."""
        for parameter in (self.u, self.v, self.weight):
            nn.init.normal_(parameter, std=0.02)

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The terms u . k and (q + v) . W R of the scores."""
        q, k = content.q, content.k
        u, v, weight = (x.to(q.dtype) for x in (self.u, self.v, self.weight))
        sine, cosine = ((q + v.unsqueeze(1)) @ weight).chunk(2, dim=-1)
        (cos_m, sin_m), (cos_n, sin_n) = (
            (x.unsqueeze(-3) for x in cos_sin(p, self.spectrum, dtype=q.dtype)) for p in (q_positions, k_positions)
        )
        rotated = torch.cat([sine * sin_m + cosine * cos_m, cosine * sin_m - sine * cos_m], dim=-1)
        sinusoids = torch.cat([cos_n, sin_n], dim=-1).expand(*k.shape[:3], self.width)
        return content.scale * ((k @ u.unsqueeze(-1)).mT + rotated @ sinusoids.mT)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.width}, {self.heads}"
