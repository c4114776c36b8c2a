"""YaRN: divide low frequencies by the factor, keep high ones, interpolate between; and scale attention.

    f[i]         = base ** (-2i / width)
    frequency[i] = f[i] / factor * ramp[i] + f[i] * (1 - ramp[i])
    attention_scaling = m(mscale) / m(mscale_all_dim)               m(c) = 0.1 c ln(factor) + 1
    scores are also multiplied by m(mscale_all_dim) ** 2

    ramp "pairs", the authors' code and every published model: linear in the pair's index i

        index(t)  = width * ln(original / (2 pi t)) / (2 ln base)     the pair with t periods in the original length
        low, high = index(beta_fast), index(beta_slow)                rounded outwards if `truncate`, in 0 .. width - 1
        ramp[i]   = min(1, max(0, (i - low) / (high - low)))

    ramp "periods", the paper: linear in the number of periods r[i]

        r[i]    = original * f[i] / (2 pi)
        ramp[i] = min(1, max(0, (beta_fast - r[i]) / (beta_fast - beta_slow)))

The two agree at both ends of the ramp and differ between them, where the code keeps frequencies higher: a frequency of
the code is up to 1.7 times that of the paper at factor 4, and 4.0 times at factor 32 (width 128, base 10000, 4096
tokens). Weights trained with one are wrong with the other; published weights were trained with the code.

The attention scaling multiplies the cosines and sines of queries and keys, so scores are multiplied by its square. With
the paper's mscale = 1, mscale_all_dim = 0 it is 0.1 ln(factor) + 1, and there is no other factor. DeepSeek moves it to
the scores, which then also scales features that are not rotated. (transformers reads an mscale without an
mscale_all_dim as 1.)
Source: ramp "periods": Peng et al. 2023, "YaRN", arXiv:2309.00071, sections 3.2 to 3.4; ramp "pairs": the authors'
code, jquesnelle/yarn, scaled_rope/LlamaYaRNScaledRotaryEmbedding.py, and transformers; DeepSeek-AI 2024, "DeepSeek-V2",
arXiv:2405.04434, section 3.1.4; `truncate` is False in OpenAI's gpt-oss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor, check_length, check_not_negative, check_positive
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError

YarnRamp = Literal["pairs", "periods"]


@dataclass(frozen=True)
class Yarn:
    """Divide low frequencies by the factor and keep high ones."""

    factor: float
    original: int
    """The training length [tokens]."""
    beta_fast: float = 32.0
    """Frequencies with at least this many periods in the original length are not changed."""
    beta_slow: float = 1.0
    """Frequencies with at most this many periods are divided by the factor."""
    mscale: float = 1.0
    mscale_all_dim: float = 0.0
    attention_scaling: float | None = None
    """The attention scaling, if it does not follow from the factor."""
    truncate: bool = True
    """Round the ends of the ramp "pairs" outwards."""
    ramp: YarnRamp = "pairs"
    """Linear in the pair's index, as in the authors' code, or in its number of periods, as in the paper."""

    def __post_init__(self) -> None:
        check_factor("Yarn", self.factor)
        check_length("Yarn", original=self.original)
        check_positive("Yarn", beta_fast=self.beta_fast, beta_slow=self.beta_slow)
        check_not_negative("Yarn", mscale=self.mscale, mscale_all_dim=self.mscale_all_dim)
        if self.beta_fast < self.beta_slow:
            raise EncodingError(f"Yarn: beta_fast must be at least beta_slow={self.beta_slow}, got {self.beta_fast}")
        if self.attention_scaling is not None:
            check_positive("Yarn", attention_scaling=self.attention_scaling)
        if not isinstance(self.truncate, bool):
            raise EncodingError(f"Yarn: truncate must be True or False, got {self.truncate!r}")
        if self.ramp not in get_args(YarnRamp):
            raise EncodingError(f"Yarn: ramp must be 'pairs' or 'periods', got {self.ramp!r}")
        if self.ramp == "periods" and not self.truncate:
            raise EncodingError("Yarn: truncate=False rounds no pair index, and ramp 'periods' has none; leave it out")

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The interpolated frequencies and the attention scaling."""
        plain = geometric_frequencies(width=width, base=base).frequencies
        ramp = self._ramp_of_pairs(width, base) if self.ramp == "pairs" else self._ramp_of_periods(plain)
        frequencies = tuple(f / self.factor * r + f * (1 - r) for f, r in zip(plain, ramp, strict=True))
        attention_scaling = (
            self._mscale(self.mscale) / self._mscale(self.mscale_all_dim)
            if self.attention_scaling is None
            else self.attention_scaling
        )
        return Spectrum(
            frequencies=frequencies,
            attention_scaling=attention_scaling,
            score_scale=self._mscale(self.mscale_all_dim) ** 2,
        )

    def _ramp_of_pairs(self, width: int, base: float) -> list[float]:
        """The share of the division in each pair, as in the authors' code."""
        low, high = self._pair_index(self.beta_fast, width, base), self._pair_index(self.beta_slow, width, base)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        if low == high:
            high += 0.001  # a step, as in transformers
        return [min(1.0, max(0.0, (i - low) / (high - low))) for i in range(width // 2)]

    def _ramp_of_periods(self, plain: tuple[float, ...]) -> list[float]:
        """The share of the division in each pair, as in the paper."""
        periods = [self.original * f / (2 * math.pi) for f in plain]
        if self.beta_fast == self.beta_slow:
            return [float(r < self.beta_slow) for r in periods]
        return [min(1.0, max(0.0, (self.beta_fast - r) / (self.beta_fast - self.beta_slow))) for r in periods]

    def _pair_index(self, periods: float, width: int, base: float) -> float:
        if not base > 1:
            raise EncodingError(f"Yarn: base must be above 1, so that frequencies decrease, got {base!r}")
        return width * math.log(self.original / (2 * math.pi * periods)) / (2 * math.log(base))

    def _mscale(self, weight: float) -> float:
        return 0.1 * weight * math.log(self.factor) + 1
