"""Rotary position encoding (RoPE): turn feature pairs by an angle set by position.

    <R(p) q, R(s) k> = <q, R(s - p) k>     because     R(p)^T R(s) = R(s - p)

so a score sees the distance s - p only. R(p) turns pair i by p * frequency[i] radians,
frequency[i] = base ** (-2i / width).

A schedule gives other frequencies, for sequences longer than those a model was trained on (see `schedules`). Where
they depend on the length of a row, that length is given as `lengths`, and what is relative is so among rows of one
length; where none is given it is the longest that the schedule declares. Where `rotary_width` is given only so many
features are turned, with frequencies base ** (-2i / rotary_width) (GPT-J, GPT-NeoX, Phi).
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2.2.
"""

from __future__ import annotations

from typing import Self

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings._operands import check_size
from orderproof.encodings._pairs import Layout
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import Rotation, spectrum_of


@register(
    "rotary",
    called=(
        "rope",
        "roformer",
    ),
)
class Rotary(Rotation):
    """Queries and keys turned by position."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(
        self,
        head_width: int,
        *,
        base: float = 10_000.0,
        layout: Layout = "half",
        rotary_width: int | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        name, width = ("head_width", head_width) if rotary_width is None else ("rotary_width", rotary_width)
        check_size("Rotary", name, width, even=True)
        spectrum = spectrum_of("Rotary", schedule, width=width, base=base)
        super().__init__(head_width, spectrum, layout=layout, rotary_width=rotary_width)
        self.follow_lengths(schedule, width=width, base=base)
        self.base = base
        self.schedule = schedule

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper, in layout "half"."""
        return cls(sizes.head_width)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        schedule = "" if self.schedule is None else f", schedule={self.schedule!r}"
        return f"{super().extra_repr()}, base={self.base}{schedule}"
