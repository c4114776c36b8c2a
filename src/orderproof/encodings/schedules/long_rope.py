"""LongRoPE: a divisor for each pair, found by search; one set up to the original length and one past it.

    frequency[i] = base ** (-2i / width) / divisor[i]       divisor = long  where length > original, else short
    gain         = sqrt(1 + ln(maximum / original) / ln(original))        1 where maximum <= original

What does not follow: that a cache of turned keys stays true when a row grows past the original length. The length is
data: the same declared length gives the same angles whether a row is read at once or token by token, alone or beside
longer ones. Where none is given it is `maximum`.
Source: Ding et al. 2024, "LongRoPE", arXiv:2402.13753, section 3; Abdin et al. 2024, "Phi-3 Technical Report",
arXiv:2404.14219; a gain for each set is Phi-3.5-MoE's (short_mscale, long_mscale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._frequencies import RowSpectra, Spectrum
from orderproof.encodings._operands import constant
from orderproof.encodings.schedules._numbers import check_length, check_positive
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True)
class LongRope:
    """Each frequency divided by a number of its own, which depends on whether the row is long."""

    short: tuple[float, ...]
    """The divisors up to the original length, one a pair."""
    long: tuple[float, ...]
    """The divisors past it."""
    original: int
    """The length the model was trained on [tokens]."""
    maximum: int
    """The longest row, and the length to assume where none is given [tokens]."""
    short_gain: float | None = None
    """The gain up to the original length; None: by the formula."""
    long_gain: float | None = None

    def __post_init__(self) -> None:
        check_length("LongRope", original=self.original, maximum=self.maximum)
        if self.original < 2:
            raise EncodingError(f"LongRope: original must be 2 or more, got {self.original!r}")
        for name in ("short", "long"):
            divisors: object = getattr(self, name)
            if not isinstance(divisors, Sequence) or isinstance(divisors, str):
                raise EncodingError(f"LongRope: {name} must be divisors, one a pair, got {divisors!r}")
            object.__setattr__(self, name, tuple(divisors))
            for i, divisor in enumerate(divisors):
                check_positive("LongRope", **{f"{name}[{i}]": divisor})
        for name in ("short_gain", "long_gain"):
            if getattr(self, name) is not None:
                check_positive("LongRope", **{name: getattr(self, name)})

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies at the declared maximum."""
        short, long = self._spectra(width, base)
        return long if self.maximum > self.original else short

    def at(self, lengths: Int[Tensor, " row"], *, width: int, base: float) -> RowSpectra:
        """The frequencies of each row at its length."""
        is_long = lengths > self.original
        (short, long), (short_gain, long_gain) = (
            tuple(constant(numbers, lengths.device) for numbers in pair)
            for pair in zip(*((s.frequencies, s.gain) for s in self._spectra(width, base)), strict=True)
        )
        return RowSpectra(torch.where(is_long.unsqueeze(-1), long, short), torch.where(is_long, long_gain, short_gain))

    def _spectra(self, width: int, base: float) -> tuple[Spectrum, Spectrum]:
        """The spectrum up to the original length, and the one past it."""
        plain = geometric(width=width, base=base).frequencies
        ratio = self.maximum / self.original
        formula = math.sqrt(1 + math.log(ratio) / math.log(self.original)) if ratio > 1 else 1.0
        found = []
        for name, divisors, gain in (("short", self.short, self.short_gain), ("long", self.long, self.long_gain)):
            if len(divisors) != len(plain):
                came = len(divisors)
                raise EncodingError(f"LongRope: {name} must have {len(plain)} divisors, one a pair, got {came}")
            frequencies = tuple(f / divisor for f, divisor in zip(plain, divisors, strict=True))
            found.append(Spectrum(frequencies=frequencies, gain=formula if gain is None else gain))
        return found[0], found[1]
