"""Multimodal rotary encoding (M-RoPE): RoPE with three position axes: time, row and column.

    angle of pair i at position p = (time, row, column):  p[axis[i]] * base ** (-2i / width)

    chunked       axis = time for the first sections[0] pairs, row for the next sections[1], column for the rest
    interleaved   axis = time, row, column, time, row, column, ... until rows and columns have their sections;
                  time for the rest

On text all three positions are equal and both layouts are exactly RoPE, so weights trained on text stay valid. Chunked
gives rows and columns only low frequencies; interleaved gives each axis the full range.
With `rotary_width` only that number of features is rotated (Qwen3.5, GLM-4.5V).
Positions are inputs (`positions.mrope`): no offset between tokens and positions is stored between calls.
Source: Wang et al. 2024, "Qwen2-VL", arXiv:2409.12191, section 2.1 (chunked); Bai et al. 2025, "Qwen3-VL Technical
Report", arXiv:2511.21631 (interleaved).
"""

from __future__ import annotations

from typing import Any, Literal, Self

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import RotaryBase, rotary_spectrum
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings.checks import check_size, is_sequence_of_length
from orderproof.errors import EncodingError

SectionLayout = Literal["chunked", "interleaved"]


@register("mrope", aliases=("m-rope",))
class MRope(RotaryBase):
    """Rotary encoding with a share of the feature pairs for each of time, row and column."""

    claims = Claims(site="rotate", relative=True, symmetric=False, ndim=3)

    def __init__(
        self,
        head_width: int,
        *,
        sections: tuple[int, int, int] | None = None,
        section_layout: SectionLayout = "chunked",
        base: float = 10_000.0,
        layout: RotaryLayout = "half",
        rotary_width: int | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        name, width = ("head_width", head_width) if rotary_width is None else ("rotary_width", rotary_width)
        check_size("MRope", name, width, even=True)
        pairs = width // 2
        if sections is None:
            sections = (pairs - 2 * (3 * pairs // 8), 3 * pairs // 8, 3 * pairs // 8)
        spectrum = rotary_spectrum("MRope", schedule, width=width, base=base)
        pair_axes = _pair_axes(sections, section_layout, pairs)
        super().__init__(head_width, spectrum, layout=layout, rotary_width=rotary_width, pair_axes=pair_axes)
        self.use_length_dependent_scaling(schedule, width=width, base=base)
        self.sections = sections
        self.section_layout: SectionLayout = section_layout
        self.base = base
        self.schedule = schedule

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The encoding of Qwen2-VL: sections of 2, 3 and 3 eighths, chunked."""
        return cls(sizes.head_width, **options)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        schedule = "" if self.schedule is None else f", schedule={self.schedule!r}"
        sections = f"sections={self.sections}, section_layout={self.section_layout!r}"
        return f"{super().extra_repr()}, {sections}, base={self.base}{schedule}"


def _pair_axes(sections: tuple[int, ...], section_layout: SectionLayout, pairs: int) -> tuple[int, ...]:
    """The axis of each pair."""
    if section_layout not in ("chunked", "interleaved"):
        raise EncodingError(f"MRope: section_layout must be 'chunked' or 'interleaved', got {section_layout!r}")
    if not is_sequence_of_length(sections, 3) or min(sections) < 1 or sum(sections) != pairs:
        raise EncodingError(f"MRope: sections must be three sizes, 1 or more, that sum to {pairs}, got {sections!r}")
    if section_layout == "chunked":
        return tuple(axis for axis in range(3) for _ in range(sections[axis]))
    pair_axes = [0] * pairs
    for axis in (1, 2):
        if axis + 3 * (sections[axis] - 1) >= pairs:
            raise EncodingError(
                f"MRope: interleaved sections of rows and columns must fit in every third of {pairs} pairs, "
                f"got {sections!r}"
            )
        pair_axes[axis : 3 * sections[axis] : 3] = [axis] * sections[axis]
    return tuple(pair_axes)
