"""Dynamic NTK scaling: the base grows with the context length.

    frequency[i] = base' ** (-2i / width)          base' = base * r ** (width / (width - 2))
    r = factor * max(length, original) / original - (factor - 1)

Nothing changes up to the original length; beyond it the lowest frequency is divided by r. The paper's rule is
factor = 1, with r = length / original; a larger factor scales by more than the row has grown.

A cache of rotated keys becomes invalid as the row grows, because frequencies belong to one length. Therefore the length
is an input: the same length gives the same angles whether a row is processed at once or token by token, alone or in a
batch with longer rows. The default is `maximum`; without lengths, larger positions raise an error.
Source: emozilla 2023, "Dynamically Scaled RoPE"; Peng et al. 2023, "YaRN", arXiv:2309.00071, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._frequencies import PerRowSpectrum, Spectrum
from orderproof.encodings.checks import device_constant
from orderproof.encodings.schedules._numbers import check_factor, check_length
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True)
class DynamicNTK:
    """Increase the base with the context length of a row."""

    factor: float
    original: int
    """The training length [tokens]."""
    maximum: int | None = None
    """The default context length [tokens]; None: factor times the original."""

    def __post_init__(self) -> None:
        check_factor("DynamicNTK", self.factor)
        check_length("DynamicNTK", original=self.original)
        if self.maximum is not None:
            check_length("DynamicNTK", maximum=self.maximum)

    @property
    def default_length(self) -> int:
        """The maximum, or factor times the original length [tokens]."""
        return int(self.factor * self.original) if self.maximum is None else self.maximum

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies at the default length."""
        ratio = self.factor * max(self.default_length, self.original) / self.original - (self.factor - 1)
        plain, exponents = geometric_frequencies(width=width, base=base).frequencies, _exponents(width)
        return Spectrum(frequencies=tuple(f * ratio**e for f, e in zip(plain, exponents, strict=True)))

    def spectrum_at(self, lengths: Int[Tensor, " row"], *, width: int, base: float) -> PerRowSpectrum:
        """The frequencies of each row at its length."""
        longest = lengths.clamp(min=self.original).to(torch.float64)
        ratio = self.factor * longest / self.original - (self.factor - 1)
        plain, exponents = (
            device_constant(numbers, lengths.device)
            for numbers in (geometric_frequencies(width=width, base=base).frequencies, _exponents(width))
        )
        frequencies = plain * ratio.unsqueeze(-1) ** exponents
        return PerRowSpectrum(frequencies, torch.ones_like(ratio))


def _exponents(width: int) -> tuple[float, ...]:
    """The exponent of r in each frequency: (r ** (width / (width - 2))) ** (-2i / width), simplified."""
    if width < 4:
        raise EncodingError(
            f"DynamicNTK: width must be 4 or more, because one pair cannot have two frequencies, got {width}"
        )
    return tuple(-2 * i / (width - 2) for i in range(width // 2))
