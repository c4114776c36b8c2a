"""Claim 7: added position vectors break permutation equivariance, whether they are fixed or learned.

    f(X + E) with one row of E per position: in general, f(P X + E) differs from P f(X + E) if rows of E differ

Sinusoidal vectors have a further property: a single matrix M_k maps the vector of every position p to that of p + k,

    [ sin((p + k) w) ]   [  cos(k w)  sin(k w) ] [ sin(p w) ]
    [ cos((p + k) w) ] = [ -sin(k w)  cos(k w) ] [ cos(p w) ]       for each frequency w

so that a shift by k is the same rotation at every position. A learned table has no such matrix in general.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from orderproof import positions
from orderproof.blocks import fingerprint_model
from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome, Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.numeric_check import ROUNDING_TOLERANCE, classify_difference
from orderproof.claims.small_models import WIDTH
from orderproof.encodings import Sinusoidal
from orderproof.laws.proved.permutation import LAW as PERMUTATION
from orderproof.report import phrases

SHIFT, LAST_POSITION = 3, 1000
FEATURES = 8  # of the position vectors

SinusoidPair = Callable[[Any, Any], tuple[Any, Any]]
"""The two features of one frequency, from the position and the frequency."""


def _encoder(encoding: str) -> nn.Module:
    return fingerprint_model(encoding, causal=False, layers=1, width=WIDTH, heads=2, length=16)


def sinusoidal_encoder() -> nn.Module:
    """One bidirectional layer with sinusoidal positions."""
    return _encoder("sinusoidal")


def learned_encoder() -> nn.Module:
    """One bidirectional layer with learned positions."""
    return _encoder("learned")


def encoder_without_positions() -> nn.Module:
    """One bidirectional layer without positions."""
    return _encoder("none")


def sinusoid_pair() -> SinusoidPair:
    """The two sinusoids of one frequency w at position p, symbolically."""
    import sympy

    return lambda p, w: (sympy.sin(p * w), sympy.cos(p * w))


def chirp_pair() -> SinusoidPair:
    """Sinusoids of the squared position, symbolically."""
    import sympy

    return lambda p, w: (sympy.sin(p * p * w), sympy.cos(p * p * w))


def sinusoidal_table() -> Tensor:
    """The sinusoidal vectors of positions 0 to 1002, in float64."""
    return Sinusoidal(FEATURES).encoding_table(positions.arange(LAST_POSITION + SHIFT), dtype=torch.float64)


def learned_table() -> Tensor:
    """As many random vectors, like a learned table at initialisation."""
    return torch.randn(LAST_POSITION + SHIFT, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def shift_is_rotation(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check symbolically that M_k maps the sinusoids at p to those at p + k, for every p, k and w."""
    import sympy

    p, k, w = sympy.symbols("p k w", real=True)
    pair: SinusoidPair = make_subject()
    sin, cos = pair(k, w)
    M = sympy.Matrix([[cos, sin], [-sin, cos]])
    difference = M * sympy.Matrix(pair(p, w)) - sympy.Matrix(pair(p + k, w))
    difference = difference.applyfunc(lambda t: sympy.expand(t, trig=True))
    if difference == sympy.zeros(2, 1):
        return CheckOutcome(
            verdict="proved", method="algebra",
            evidence=("M_k [sin pw, cos pw] - [sin (p+k)w, cos (p+k)w] expands to 0, for every p, k and w",),
        )  # fmt: skip
    size = max(abs(float(t)) for t in difference.subs({p: 1, k: 2, w: sympy.Rational(1, 3)}))
    text = f"with p = 1, k = 2, w = 1/3 the two sides differ by {phrases.format_difference(size)}"
    return CheckOutcome(verdict="refuted" if size > 1e-9 else "undecided", method="algebra", evidence=(text,))


def shift_matrix() -> Tensor:
    """M_k for the frequencies of `Sinusoidal`: one rotation per pair of features."""
    M = torch.zeros(FEATURES, FEATURES, dtype=torch.float64)
    for i, frequency in enumerate(Sinusoidal(FEATURES).spectrum.frequencies):
        sin, cos = math.sin(SHIFT * frequency), math.cos(SHIFT * frequency)
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)
    return M


def shift_is_linear(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that M_k, or the least-squares matrix, maps row p of a table to row p + k, for every p."""
    E: Tensor = make_subject()
    before, after = E[:LAST_POSITION], E[SHIFT:]
    fitted = torch.linalg.lstsq(before, after).solution.T
    exact, fit = (float((before @ M.T - after).abs().max()) for M in (shift_matrix(), fitted))
    rows = shift_matrix()[:4, :4].tolist() if exact <= ROUNDING_TOLERANCE else []
    lines = [f"M for k = {SHIFT}, its first two rotations:"] if rows else []
    lines += [f"[{' '.join(f'{x:7.4f}' for x in row)}]" for row in rows]
    errors = f"M {phrases.format_difference(exact)}, the least-squares matrix {phrases.format_difference(fit)}"
    lines.append(f"rows 0 to {LAST_POSITION - 1}: largest error of row p + {SHIFT}: {errors}")
    return classify_difference(min(exact, fit), tuple(lines))


CLAIM = Claim(
    number=7,
    name="position_vectors",
    statement="Adding a position's vector breaks the symmetry, with fixed and with learned vectors.",
    expected_verdict="proved",
    exact_statement=(
        "With added sinusoidal or learned vectors, permuting tokens can change the content of the output rows, not "
        "only their order. Order enters only at that sum. For sinusoidal vectors, and not for learned ones in "
        "general, one matrix maps the vector of every position to that of the position k later."
    ),
    conditions=(
        "the vectors of the positions differ; with equal vectors, equivariance holds again",
        "it is proved that order can reach the output, not that a model uses it well",
        "the matrix depends on k and on the frequencies, not on the position",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    theorems=(
        "order.added_vectors.added_vectors_break_equivariance",
        "order.added_vectors.added_vectors_separate_orders",
        "order.sinusoid.sinusoid_shift_linear",
    ),
    checks=(
        ClaimCheck(
            statement="permuting the tokens permutes the output rows in the same way",
            make_subject=sinusoidal_encoder,
            method=LawCheck(PERMUTATION),
            expected="fails",
            asserted_by_claim="fails",
            negative_control=encoder_without_positions,
        ),
        ClaimCheck(
            statement="permuting the tokens permutes the output rows in the same way",
            make_subject=learned_encoder,
            method=LawCheck(PERMUTATION),
            expected="fails",
            asserted_by_claim="fails",
            negative_control=encoder_without_positions,
        ),
        ClaimCheck(
            statement="a shift by k is one rotation per frequency, the same at every position",
            make_subject=sinusoid_pair,
            method=shift_is_rotation,
            expected="holds",
            negative_control=chirp_pair,
        ),
        ClaimCheck(
            statement="one matrix maps the row of every position to the row 3 positions later",
            make_subject=sinusoidal_table,
            method=shift_is_linear,
            expected="holds",
            negative_control=learned_table,
        ),
        ClaimCheck(
            statement="one matrix maps the row of every position to the row 3 positions later",
            make_subject=learned_table,
            method=shift_is_linear,
            expected="fails",
            negative_control=sinusoidal_table,
        ),
    ),
)
