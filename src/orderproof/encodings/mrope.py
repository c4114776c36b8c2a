"""Multimodal rotary encoding (M-RoPE): RoPE whose pairs take their positions from three streams.

    angle of pair i at position p = (time, row, column):  p[stream[i]] * base ** (-2i / width)

    chunked       stream = time for the first sections[0] pairs, row for the next sections[1], column for the rest
    interleaved   stream = time, row, column, time, row, column, ... until rows and columns have their sections;
                  time for the rest

On text all three positions are alike and both are RoPE exactly; so weights trained on text go on working. Chunked
gives rows and columns only slow pairs, interleaved gives each stream the whole range.
Where `rotary_width` is given only so many features are turned (Qwen3.5, GLM-4.5V).
The positions are data (`positions.mrope`): no offset between tokens and positions is kept from call to call.
Source: Wang et al. 2024, "Qwen2-VL", arXiv:2409.12191, section 2.1 (chunked); Bai et al. 2025, "Qwen3-VL Technical
Report", arXiv:2511.21631 (interleaved).
"""

from __future__ import annotations

from typing import Literal, Self

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings._operands import check_size, is_row
from orderproof.encodings._pairs import Layout
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import Rotation, spectrum_of
from orderproof.errors import EncodingError

Order = Literal["chunked", "interleaved"]


@register("mrope", called=("m-rope",))
class MRope(Rotation):
    """Queries and keys turned by time, row and column, each in its share of the pairs."""

    claims = Claims(site="rotate", relative=True, symmetric=False, ndim=3)

    def __init__(
        self,
        head_width: int,
        *,
        sections: tuple[int, int, int] | None = None,
        order: Order = "chunked",
        base: float = 10_000.0,
        layout: Layout = "half",
        rotary_width: int | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        name, width = ("head_width", head_width) if rotary_width is None else ("rotary_width", rotary_width)
        check_size("MRope", name, width, even=True)
        pairs = width // 2
        if sections is None:
            sections = (pairs - 2 * (3 * pairs // 8), 3 * pairs // 8, 3 * pairs // 8)
        spectrum = spectrum_of("MRope", schedule, width=width, base=base)
        axis = _streams(sections, order, pairs)
        super().__init__(head_width, spectrum, layout=layout, rotary_width=rotary_width, axis=axis)
        self.follow_lengths(schedule, width=width, base=base)
        self.sections = sections
        self.order: Order = order
        self.base = base
        self.schedule = schedule

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of Qwen2-VL: sections of 2, 3 and 3 eighths, chunked."""
        return cls(sizes.head_width)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        schedule = "" if self.schedule is None else f", schedule={self.schedule!r}"
        return f"{super().extra_repr()}, sections={self.sections}, order={self.order!r}, base={self.base}{schedule}"


def _streams(sections: tuple[int, ...], order: Order, pairs: int) -> tuple[int, ...]:
    """The stream of each pair."""
    if order not in ("chunked", "interleaved"):
        raise EncodingError(f"MRope: order must be 'chunked' or 'interleaved', got {order!r}")
    if not is_row(sections, 3) or min(sections) < 1 or sum(sections) != pairs:
        raise EncodingError(f"MRope: sections must be three sizes, 1 or more, that sum to {pairs}, got {sections!r}")
    if order == "chunked":
        return tuple(stream for stream in range(3) for _ in range(sections[stream]))
    streams = [0] * pairs
    for stream in (1, 2):
        if stream + 3 * (sections[stream] - 1) >= pairs:
            raise EncodingError(
                f"MRope: interleaved sections of rows and columns must fit in every third of {pairs} pairs, "
                f"got {sections!r}"
            )
        streams[stream : 3 * sections[stream] : 3] = [stream] * sections[stream]
    return tuple(streams)
