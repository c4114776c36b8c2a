"""Rotary position encoding (RoPE): feature pairs rotated by an angle proportional to the position.

    <R(p) q, R(s) k> = <q, R(s - p) k>     because     R(p)^T R(s) = R(s - p)

A score depends only on the distance s - p. R(p) rotates pair i by p * frequency[i] radians,
frequency[i] = base ** (-2i / width).

A schedule changes the frequencies for sequences longer than the training length (see `schedules`). If they depend on
the context length, it is passed as `lengths` (default: the schedule's maximum), and the encoding is relative among
rows of one length. With `rotary_width` only that number of features is rotated, with frequencies
base ** (-2i / rotary_width) (GPT-J, GPT-NeoX, Phi).
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2.2.
"""

from __future__ import annotations

from typing import Any, Self

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import RotaryBase, rotary_spectrum
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings.checks import check_size


@register(
    "rotary",
    aliases=(
        "rope",
        "roformer",
    ),
)
class Rotary(RotaryBase):
    """Rotary position encoding."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(
        self,
        head_width: int,
        *,
        base: float = 10_000.0,
        layout: RotaryLayout = "half",
        rotary_width: int | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        name, width = ("head_width", head_width) if rotary_width is None else ("rotary_width", rotary_width)
        check_size("Rotary", name, width, even=True)
        spectrum = rotary_spectrum("Rotary", schedule, width=width, base=base)
        super().__init__(head_width, spectrum, layout=layout, rotary_width=rotary_width)
        self.use_length_dependent_scaling(schedule, width=width, base=base)
        self.base = base
        self.schedule = schedule

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The paper's encoding, in layout "half"."""
        return cls(sizes.head_width, **options)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        schedule = "" if self.schedule is None else f", schedule={self.schedule!r}"
        return f"{super().extra_repr()}, base={self.base}{schedule}"
