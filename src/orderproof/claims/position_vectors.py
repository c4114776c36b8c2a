"""Claim 7: adding a position's vector breaks the symmetry, whether it is fixed or learned.

    f(X + E) with a row of E for each position: f(P X + E) is not P f(X + E) as soon as rows of E differ

Sinusoidal vectors have more to them: one and the same matrix M_k takes the vector of every position p to that of p + k,

    [ sin((p + k) w) ]   [  cos(k w)  sin(k w) ] [ sin(p w) ]
    [ cos((p + k) w) ] = [ -sin(k w)  cos(k w) ] [ cos(p w) ]       for each frequency w

so that "k further on" is the same turn everywhere. A table of learned vectors has no such matrix, in general.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from orderproof import positions as place
from orderproof.blocks import fingerprint_block
from orderproof.claims.bench import Bench
from orderproof.claims.by_law import ByLaw
from orderproof.claims.by_numbers import ROUNDING, judged
from orderproof.claims.claim import Claim, Ground, Make, Outcome
from orderproof.claims.models import WIDTH
from orderproof.encodings import Sinusoidal
from orderproof.report import words

SHIFT, FAR = 3, 1000
WAVES = 8  # features of the table of which a shift's matrix is shown

Waves = Callable[[Any, Any], tuple[Any, Any]]


def _encoder(encoding: str) -> nn.Module:
    return fingerprint_block(encoding, causal=False, layers=1, width=WIDTH, heads=2, length=16)


def fixed() -> nn.Module:
    """One layer without a mask, with sinusoidal vectors added."""
    return _encoder("sinusoidal")


def learned() -> nn.Module:
    """One layer without a mask, with a learned vector for each position added."""
    return _encoder("learned")


def nothing_added() -> nn.Module:
    """One layer without a mask and without positions."""
    return _encoder("none")


def waves() -> Waves:
    """The two waves of one frequency w at position p, as symbols."""
    import sympy

    return lambda p, w: (sympy.sin(p * w), sympy.cos(p * w))


def chirps() -> Waves:
    """Waves of the square of the position, as symbols."""
    import sympy

    return lambda p, w: (sympy.sin(p * p * w), sympy.cos(p * p * w))


def table() -> Tensor:
    """The library's sinusoidal vectors of positions 0 to 1002, in float64."""
    return Sinusoidal(WAVES).table(place.arange(FAR + SHIFT), dtype=torch.float64)


def learned_table() -> Tensor:
    """As many vectors drawn at random, as a learned table starts."""
    return torch.randn(FAR + SHIFT, WAVES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def turned_by_one_matrix(make: Make, bench: Bench) -> Outcome:
    """Whether the matrix M_k takes the waves at p to those at p + k, with symbols for p, k and w."""
    import sympy

    p, k, w = sympy.symbols("p k w", real=True)
    wave: Waves = make()
    sin, cos = wave(k, w)
    M = sympy.Matrix([[cos, sin], [-sin, cos]])
    gap = (M * sympy.Matrix(wave(p, w)) - sympy.Matrix(wave(p + k, w))).applyfunc(lambda t: sympy.expand(t, trig=True))
    if gap == sympy.zeros(2, 1):
        return Outcome(
            found="proved", method="algebra",
            evidence=("M_k [sin pw, cos pw] - [sin (p+k)w, cos (p+k)w] expands to 0, for every p, k and w",),
        )  # fmt: skip
    size = max(abs(float(t)) for t in gap.subs({p: 1, k: 2, w: sympy.Rational(1, 3)}))
    text = f"with p = 1, k = 2, w = 1/3 the two sides differ by {words.size(size)}"
    return Outcome(found="refuted" if size > 1e-9 else "undecided", method="algebra", evidence=(text,))


def shift_matrix() -> Tensor:
    """M_k of the library's frequencies: one turn for each pair of features."""
    M = torch.zeros(WAVES, WAVES, dtype=torch.float64)
    for i, frequency in enumerate(Sinusoidal(WAVES).spectrum.frequencies):
        sin, cos = math.sin(SHIFT * frequency), math.cos(SHIFT * frequency)
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)
    return M


def shifted_by_one_matrix(make: Make, bench: Bench) -> Outcome:
    """Whether M_k, or else the matrix that fits best, takes row p of a table to row p + k, for every p."""
    E: Tensor = make()
    before, after = E[:FAR], E[SHIFT:]
    fitted = torch.linalg.lstsq(before, after).solution.T
    gaps = {name: float((before @ M.T - after).abs().max()) for name, M in (("M", shift_matrix()), ("fit", fitted))}
    shown = shift_matrix()[:4, :4].tolist() if gaps["M"] <= ROUNDING else []
    turns = [f"M for k = {SHIFT}, its first two turns:"] if shown else []
    turns += [f"[{' '.join(f'{x:7.4f}' for x in row)}]" for row in shown]
    misses = {name: words.size(gap) for name, gap in gaps.items()}
    told = f"M misses row p + {SHIFT} by at most {misses['M']}, the best matrix by {misses['fit']}"
    return judged(min(gaps.values()), (*turns, f"rows 0 to {FAR - 1}: {told}"))


CLAIM = Claim(
    number=7,
    name="position_vectors",
    statement="Adding a position's vector breaks the symmetry, with fixed and with learned vectors alike.",
    documented="proved",
    exact=(
        "With sinusoidal vectors added, and with learned ones, exchanging tokens can change what the output's rows "
        "say and not only where they stand. Order enters at that sum and nowhere else. For sinusoidal vectors, and "
        "not for learned ones in general, one matrix takes the vector of every position to that of the position k "
        "further on."
    ),
    conditions=(
        "the vectors of the positions differ; made the same for every position, the symmetry is back",
        "that order can reach the output is proved; not that a model makes good use of it",
        "the matrix depends on k and on the frequencies, not on the position",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    grounds=(
        Ground(
            what="permute the tokens, and the output's rows are permuted alike", subject=fixed,
            test=ByLaw("order_blind"), expected="fails", asserted="fails", broken=nothing_added,
        ),
        Ground(
            what="permute the tokens, and the output's rows are permuted alike", subject=learned,
            test=ByLaw("order_blind"), expected="fails", asserted="fails", broken=nothing_added,
        ),
        Ground(
            what="a shift by k is one turn for each frequency, the same at every position", subject=waves,
            test=turned_by_one_matrix, expected="holds", broken=chirps,
        ),
        Ground(
            what="one matrix takes the row of every position to the row 3 further on", subject=table,
            test=shifted_by_one_matrix, expected="holds", broken=learned_table,
        ),
        Ground(
            what="one matrix takes the row of every position to the row 3 further on", subject=learned_table,
            test=shifted_by_one_matrix, expected="fails", broken=table,
        ),
    ),
)  # fmt: skip
