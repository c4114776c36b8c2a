"""NTK-aware scaling: a larger base, so that the slowest pair is stretched by `factor` and the fastest not at all.

    frequency[i] = base' ** (-2i / width)          base' = base * factor ** (width / (width - 2))

so frequency[i] is the plain one divided by factor ** (2i / (width - 2)): by 1 at i = 0, by `factor` at the last pair.
Source: bloc97 2023, "NTK-Aware Scaled RoPE"; Peng et al. 2023, "YaRN", arXiv:2309.00071, section 3.1, definition 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError


@dataclass(frozen=True)
class NTKAware:
    """The base raised so that the slowest pair is stretched by the factor."""

    factor: float

    def __post_init__(self) -> None:
        check_factor("NTKAware", self.factor)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies of the raised base."""
        if width < 4:
            raise EncodingError(f"NTKAware: width must be 4 or more, one pair cannot be fast and slow, got {width}")
        return geometric(width=width, base=base * self.factor ** (width / (width - 2)))
