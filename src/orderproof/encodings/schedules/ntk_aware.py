"""NTK-aware scaling: a larger base, which divides the lowest frequency by `factor` and keeps the highest.

    frequency[i] = base' ** (-2i / width)          base' = base * factor ** (width / (width - 2))

so frequency[i] is divided by factor ** (2i / (width - 2)): by 1 at i = 0, by `factor` at the last pair.
Source: bloc97 2023, "NTK-Aware Scaled RoPE"; Peng et al. 2023, "YaRN", arXiv:2309.00071, section 3.1, definition 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError


@dataclass(frozen=True)
class NTKAware:
    """Increase the base so that the lowest frequency is divided by the factor."""

    factor: float

    def __post_init__(self) -> None:
        check_factor("NTKAware", self.factor)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies of the larger base."""
        if width < 4:
            raise EncodingError(
                f"NTKAware: width must be 4 or more, because one pair cannot have two frequencies, got {width}"
            )
        return geometric_frequencies(width=width, base=base * self.factor ** (width / (width - 2)))
