"""GRAPE, multiplicative, in commuting planes: a rotation whose frequencies are learned.

    G(p) = exp(p L),    L = sum over pairs i of  frequency[h, i] * (the generator of a turn in plane i)
    <G(p) q, G(s) k> = <q, G(s - p) k>     because     G(p)^T G(s) = G(s - p)

The powers of one matrix commute, so a score sees the distance s - p only, whatever the frequencies have become. The
planes are those of coordinate pairs, and so G(p) turns pair i by p * frequency[h, i] radians. Frequencies are
exp(log_frequencies), which keeps them above 0: a plane that stood still, or turned backwards, would tell no new story.
They begin as RoPE's, base ** (-2i / width), and with those it is RoPE; heads share them, or each learns its own.

What does not follow: that the frequencies keep telling far positions apart. Nothing holds two of them apart, or any of
them slow. Nor that a model cast to bfloat16 keeps its far positions: frequencies are weights here, rounded as weights
are, by 2^-9 of an angle that grows with p. (The authors turn the other way, which is this with the two features of each
pair exchanged. Planes that are learned too, and still commute, are those of `string`; gates that turn by what tokens
hold are not here.)
Source: Zhang et al. 2025, "Group Representational Position Encoding", arXiv:2512.07805, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._at_rotate import AtRotate, Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._operands import check_flag, check_size, constant, working_dtype
from orderproof.encodings._pairs import Layout, check_layout, turn_pairs
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import spectrum_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("grape")
class Grape(AtRotate):
    """Queries and keys turned by position, at learned frequencies."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(
        self,
        head_width: int,
        heads: int,
        *,
        shared: bool = True,
        base: float = 10_000.0,
        layout: Layout = "half",
    ) -> None:
        super().__init__()
        self.head_width = self.turned_width = check_size("Grape", "head_width", head_width, even=True)
        self.shared = check_flag("Grape", "shared", shared)
        number = check_size("Grape", "heads", heads)
        self.heads = None if shared else number
        self.start = spectrum_of("Grape", None, width=head_width, base=base).frequencies
        check_layout("Grape", layout)
        self.base = base
        self.layout: Layout = layout
        self.log_frequencies = nn.Parameter(torch.empty(1 if shared else number, head_width // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """One set of frequencies for all heads, as in the authors' models."""
        return cls(sizes.head_width, sizes.heads)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Begin as RoPE."""
        self.log_frequencies.copy_(constant(self.start, self.log_frequencies.device).log())

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Queries and keys, turned alike."""
        del side, lengths
        angles = positions.to(torch.float64)[..., None, :, None] * self.log_frequencies.to(torch.float64).exp()[:, None]
        dtype = working_dtype(x)
        return turn_pairs(x, angles.cos().to(dtype), angles.sin().to(dtype), layout=self.layout)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        heads = "" if self.heads is None else f"{self.heads}, shared=False, "
        return f"{self.head_width}, {heads}base={self.base}, layout={self.layout!r}"
