"""YaRN: stretch slow pairs, leave fast pairs, blend between; and sharpen the scores.

    f[i]      = base ** (-2i / width)
    place(t)  = width * ln(original / (2 pi t)) / (2 ln base)     the pair that makes t turns in the original length
    low, high = place(beta_fast), place(beta_slow)                rounded outwards where `truncate`, in 0 .. width - 1
    ramp[i]   = min(1, max(0, (i - low) / (high - low)))
    frequency[i] = f[i] / factor * ramp[i] + f[i] * (1 - ramp[i])
    gain      = m(mscale) / m(mscale_all_dim)                       m(c) = 0.1 c ln(factor) + 1
    scores are multiplied by m(mscale_all_dim) ** 2 besides

The gain stands on the cosines and sines of queries and of keys, so scores are multiplied by its square. With the
paper's mscale = 1, mscale_all_dim = 0 it is 0.1 ln(factor) + 1 and nothing stands besides. DeepSeek moves it: features
that are not turned are then sharpened too. (transformers reads an mscale without an mscale_all_dim as if it were 1.)
Source: Peng et al. 2023, "YaRN", arXiv:2309.00071, sections 3.2 to 3.4; DeepSeek-AI 2024, "DeepSeek-V2",
arXiv:2405.04434, section 3.1.4; `truncate` is False in OpenAI's gpt-oss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor, check_length, check_not_negative, check_positive
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError


@dataclass(frozen=True)
class Yarn:
    """Slow pairs stretched by the factor, fast pairs not at all."""

    factor: float
    original: int
    """The length the model was trained on [tokens]."""
    beta_fast: float = 32.0
    """Pairs that make this many turns or more within the original length are not stretched."""
    beta_slow: float = 1.0
    """Pairs that make this many or fewer are stretched whole."""
    mscale: float = 1.0
    mscale_all_dim: float = 0.0
    gain: float | None = None
    """The gain itself, where it does not follow from the factor."""
    truncate: bool = True

    def __post_init__(self) -> None:
        check_factor("Yarn", self.factor)
        check_length("Yarn", original=self.original)
        check_positive("Yarn", beta_fast=self.beta_fast, beta_slow=self.beta_slow)
        check_not_negative("Yarn", mscale=self.mscale, mscale_all_dim=self.mscale_all_dim)
        if self.beta_fast < self.beta_slow:
            raise EncodingError(f"Yarn: beta_fast must be at least beta_slow={self.beta_slow}, got {self.beta_fast}")
        if self.gain is not None:
            check_positive("Yarn", gain=self.gain)
        if not isinstance(self.truncate, bool):
            raise EncodingError(f"Yarn: truncate must be True or False, got {self.truncate!r}")

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The blended frequencies, and the gain."""
        low, high = self._place(self.beta_fast, width, base), self._place(self.beta_slow, width, base)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        if low == high:
            high += 0.001  # a step instead of a slope, where transformers has it too
        frequencies = []
        for i, plain in enumerate(geometric(width=width, base=base).frequencies):
            ramp = min(1.0, max(0.0, (i - low) / (high - low)))
            frequencies.append(plain / self.factor * ramp + plain * (1 - ramp))
        gain = self._sharpen(self.mscale) / self._sharpen(self.mscale_all_dim) if self.gain is None else self.gain
        return Spectrum(frequencies=tuple(frequencies), gain=gain, score_gain=self._sharpen(self.mscale_all_dim) ** 2)

    def _place(self, turns: float, width: int, base: float) -> float:
        if not base > 1:
            raise EncodingError(f"Yarn: base must be above 1, so that later pairs are slower, got {base!r}")
        return width * math.log(self.original / (2 * math.pi * turns)) / (2 * math.log(base))

    def _sharpen(self, weight: float) -> float:
        return 0.1 * weight * math.log(self.factor) + 1
