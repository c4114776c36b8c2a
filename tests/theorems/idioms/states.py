"""States that go from token to token: loops, running sums, systems of equations, in other shapes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.idioms.idiom import Idiom, hidden, of


def averages(m: Any, x: Tensor, dim: int = 1) -> Tensor:
    """The mean of the tokens so far."""
    count = torch.arange(1, x.shape[1] + 1)[None, :, None]
    return m.v(x).cumsum(dim) / count if dim == 1 else m.v(x) + x.sum(1, keepdim=True) / count


def exponential(m: Any, x: Tensor) -> Tensor:
    """A running mean with decay, in a loop that fills a list."""
    state, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = m.decay.sigmoid() * state + m.v(x)[:, t]
        out.append(state)
    return torch.stack(out, dim=1)


def by_cell(m: Any, x: Tensor, *, backwards: bool = False) -> Tensor:
    """A cell over tokens, also from the end."""
    state, out = torch.zeros_like(x[:, 0]), []
    for token in (x.flip(1) if backwards else x).unbind(1):
        state = m.cell(token, state)
        out.append(state)
    return torch.stack(out, 1)


def retention(m: Any, x: Tensor) -> Tensor:
    """Scores times powers of a number below one."""
    i = torch.arange(x.shape[1])
    gap = (i[:, None] - i[None, :]).clamp(min=0)
    return ((m.q(x) @ m.k(x).mT) * (0.9 ** gap.float()).tril()) @ m.v(x)


def outer_sums(m: Any, x: Tensor, *, own: bool = True) -> Tensor:
    """Linear attention by a running sum of outer products."""
    kv = torch.einsum("btd,bte->btde", F.elu(m.k(x)) + 1, m.v(x))
    state = kv.cumsum(1) if own else kv.flip(1).cumsum(1).flip(1)
    return torch.einsum("btd,btde->bte", F.elu(m.q(x)) + 1, state)


def normalized_sums(m: Any, x: Tensor) -> Tensor:
    """The same with its normalizer."""
    q, k = F.relu(m.q(x)) + 1e-3, F.relu(m.k(x)) + 1e-3
    num = torch.einsum("btd,btde->bte", q, torch.einsum("btd,bte->btde", k, m.v(x)).cumsum(1))
    return num / (q * k.cumsum(1)).sum(-1, keepdim=True)


def delta_beta(m: Any, x: Tensor) -> Tensor:
    """The delta rule with rates, a negative strict triangle and the identity less it."""
    n = x.shape[1]
    k, beta = F.normalize(m.k(x), dim=-1), m.v(x).sigmoid().mean(-1, keepdim=True)
    a = -((k * beta) @ k.mT).masked_fill(hidden(x, 0), 0)
    solved = torch.linalg.solve_triangular(torch.eye(n) - a, m.v(x) * beta, upper=False)
    return (m.q(x) @ k.mT).tril() @ solved


def delta_inverse(m: Any, x: Tensor) -> Tensor:
    """The same in chunks of four, by an inverse in each."""
    b, n, d = x.shape
    k, v = (F.pad(t, (0, 0, 0, -n % 4)).reshape(b, -1, 4, d) for t in (F.normalize(m.k(x), dim=-1), m.v(x)))
    a = torch.eye(4) + (k @ k.mT).tril(-1)
    u = torch.inverse(a) @ v
    q = F.pad(m.q(x), (0, 0, 0, -n % 4)).reshape(b, -1, 4, d)
    return ((q @ k.mT).tril() @ u).reshape(b, -1, d)[:, :n]


def forward_substitution(m: Any, x: Tensor) -> Tensor:
    """Rows of a chunk corrected one after the other, as gated delta nets do."""
    k = F.normalize(m.k(x), dim=-1)
    a = -(k @ k.mT).masked_fill(hidden(x, 0), 0)[:, :, :]
    return m.q(x) + a @ m.v(x) + (a @ a) @ m.v(x)


def maxima(m: Any, x: Tensor) -> Tensor:
    """The largest of the tokens so far."""
    return m.v(x).cummax(1).values + torch.logcumsumexp(m.k(x), 1)


def shifted_mix(m: Any, x: Tensor, ahead: int = 0) -> Tensor:
    """Each token mixed with the one before, as RWKV does."""
    before = F.pad(x, (0, 0, 1, -1)) if not ahead else F.pad(x, (0, 0, -1, 1))
    return m.v(x + (before - x) * m.decay)


def windows(m: Any, x: Tensor) -> Tensor:
    """The mean of the last three tokens, by `unfold`."""
    return m.v(F.pad(x, (0, 0, 2, 0)).unfold(1, 3, 1).mean(-1))


IDIOMS = {
    "mean so far": Idiom(of(averages), of(lambda m, x: averages(m, x, 2))),
    "decay in a loop": Idiom(of(exponential)),
    "cell over tokens": Idiom(of(by_cell), of(lambda m, x: by_cell(m, x, backwards=True))),
    "powers of distances": Idiom(of(retention)),
    "sums of outer products": Idiom(of(outer_sums), of(lambda m, x: outer_sums(m, x, own=False))),
    "sums with a normalizer": Idiom(of(normalized_sums)),
    "delta rule with rates": Idiom(of(delta_beta)),
    "delta rule in chunks": Idiom(of(delta_inverse)),
    "two steps of a correction": Idiom(of(forward_substitution)),
    "largest so far": Idiom(of(maxima)),
    "mixed with the token before": Idiom(of(shifted_mix), of(lambda m, x: shifted_mix(m, x, 1))),
    "windows by unfold": Idiom(of(windows)),
}
