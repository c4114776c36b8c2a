"""Dynamic NTK scaling: the base grows with the length at which a row is read.

    frequency[i] = base' ** (-2i / width)          base' = base * r ** (width / (width - 2))
    r = factor * max(length, original) / original - (factor - 1)

so nothing changes up to the original length, and past it the slowest pair is stretched by r. The paper's rule is
factor = 1, where r = length / original; with a larger factor pairs are stretched by more than the row has grown.

What does not follow: that a cache of turned keys stays true while a row grows. The frequencies belong to one length,
and keys turned at another are wrong. So the length is data: the same declared length gives the same angles whether a
row is read at once or token by token, alone or beside longer ones. Where none is given it is `maximum`.
Source: emozilla 2023, "Dynamically Scaled RoPE"; Peng et al. 2023, "YaRN", arXiv:2309.00071, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._frequencies import RowSpectra, Spectrum
from orderproof.encodings._operands import constant
from orderproof.encodings.schedules._numbers import check_factor, check_length
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True)
class DynamicNTK:
    """The base raised by the length at which a row is read."""

    factor: float
    original: int
    """The length the model was trained on [tokens]."""
    maximum: int | None = None
    """The length to assume where none is given [tokens]; None: factor times the original."""

    def __post_init__(self) -> None:
        check_factor("DynamicNTK", self.factor)
        check_length("DynamicNTK", original=self.original)
        if self.maximum is not None:
            check_length("DynamicNTK", maximum=self.maximum)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies at the declared maximum."""
        declared = int(self.factor * self.original) if self.maximum is None else self.maximum
        stretch = self.factor * max(declared, self.original) / self.original - (self.factor - 1)
        plain, exponents = geometric(width=width, base=base).frequencies, _exponents(width)
        return Spectrum(frequencies=tuple(f * stretch**e for f, e in zip(plain, exponents, strict=True)))

    def at(self, lengths: Int[Tensor, " row"], *, width: int, base: float) -> RowSpectra:
        """The frequencies of each row at its length."""
        longest = lengths.clamp(min=self.original).to(torch.float64)
        stretch = self.factor * longest / self.original - (self.factor - 1)
        plain, exponents = (
            constant(numbers, lengths.device)
            for numbers in (geometric(width=width, base=base).frequencies, _exponents(width))
        )
        frequencies = plain * stretch.unsqueeze(-1) ** exponents
        return RowSpectra(frequencies, torch.ones_like(stretch))


def _exponents(width: int) -> tuple[float, ...]:
    """The power of the stretch in each frequency: (r ** (width / (width - 2))) ** (-2i / width), written shorter."""
    if width < 4:
        raise EncodingError(f"DynamicNTK: width must be 4 or more, one pair cannot be fast and slow, got {width}")
    return tuple(-2 * i / (width - 2) for i in range(width // 2))
