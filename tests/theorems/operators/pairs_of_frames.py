"""Tokens that are joined in pairs, the last one with a pad where their number is odd, and complex states."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Case, Program

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def pairs(m: Program, x: Tensor, delay: int) -> Tensor:
    """A map of each pair of tokens, read some pairs later."""
    rows, n, width = x.shape
    weight = torch.cat([m.first.weight, m.second.weight], 1)
    joined = F.linear(F.pad(x, (0, 0, 0, n % 2)).reshape(rows, -1, 2 * width), weight)
    joined = F.pad(joined, (0, 0, delay, 0))[:, : joined.shape[1]]
    return joined.repeat_interleave(2, 1)[:, :n] + x


def complex_states(m: Program, x: Tensor, *, late: bool = False) -> Tensor:
    """A recurrence of complex numbers from zero on, or from the last token on."""
    added, outputs = torch.complex(m.first(x), m.second(x)), []
    state = torch.zeros_like(added[:, 0])
    state = state + added[:, -1] if late else state
    for i in range(x.shape[1]):
        state = torch.complex(m.sink, m.sink) * state + added[:, i]
        outputs.append(state.real)
    return m.third(torch.stack(outputs, 1))


def filled(m: Program, x: Tensor, number: float) -> Tensor:
    """Later tokens times a complex number, of which a part is read."""
    later = torch.full((x.shape[1], x.shape[1], 2), number, dtype=torch.complex64).sum(-1).triu(1)
    return x + (later @ x.to(torch.complex64)).imag[..., :WIDTH]


def shifted(m: Program, x: Tensor, number: complex) -> Tensor:
    """Later tokens times complex numbers of zero, to which a complex number is added."""
    later = torch.zeros(x.shape[1], x.shape[1], dtype=torch.complex64) + number
    return x + (later.triu(1) @ x.to(torch.complex64)).imag


def correlated(m: Program, x: Tensor, *, over: int) -> Tensor:
    """The real part of products of spectra with conjugate ones."""
    first, second = (torch.fft.fft(f(x), dim=over) for f in (m.first, m.second))
    return x + (first * second.conj()).real + (first.resolve_conj() * torch.conj_physical(second)).real


PROGRAMS = [
    Case("conjugate spectra of features", lambda m, x: correlated(m, x, over=-1), CAUSAL),
    Case("conjugate spectra of tokens", lambda m, x: correlated(m, x, over=1), NOT_CAUSAL),
    Case("pairs of frames before", lambda m, x: pairs(m, x, 1), CAUSAL, least=5),
    Case("pairs of frames", lambda m, x: pairs(m, x, 0), NOT_CAUSAL, least=5),
    Case("complex states", complex_states, CAUSAL),
    Case("complex states from the last token on", lambda m, x: complex_states(m, x, late=True), NOT_CAUSAL),
    Case("a complex number is added to zero", lambda m, x: shifted(m, x, 1j), NOT_CAUSAL),
    Case("complex numbers of zero", lambda m, x: filled(m, x, 0.0), CAUSAL),
]
