"""Attention without softmax: running sums, chunks, the delta rule."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.idioms.idiom import WIDTH, Attention, Idiom


def in_chunks(x: Tensor, size: int = 4) -> Tensor:
    """Chunks of tokens [batch, chunk, place, width]; the last one is filled with zeros."""
    b, n, width = x.shape
    return F.pad(x, (0, 0, 0, (size - n % size) % size)).reshape(b, -1, size, width)


class RunningSum(Attention):
    """Linear attention by cumulative sums."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        kv = torch.einsum("bnd,bne->bnde", k, v).cumsum(1)
        return torch.einsum("bnd,bnde->bne", q, kv) / (q * k.cumsum(1)).sum(-1, keepdim=True)


class AllKeys(Attention):
    """The sums are of all keys."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        return q @ (k.transpose(1, 2) @ v)


class Chunked(Attention):
    """Chunks: attention within, states of those before by `cumsum(kv) - kv`."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (in_chunks(f(x)) for f in (self.q, self.k, self.v))
        kv = k.transpose(-1, -2) @ v
        state = kv.cumsum(1) - kv
        within = (q @ k.transpose(-1, -2)).tril() @ v
        return (within + q @ state).reshape(x.shape[0], -1, WIDTH)[:, : x.shape[1]]


class ChunkedOwn(Attention):
    """The own chunk is in the state, too."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (in_chunks(f(x)) for f in (self.q, self.k, self.v))
        state = (k.transpose(-1, -2) @ v).cumsum(1)
        within = (q @ k.transpose(-1, -2)).tril() @ v
        return (within + q @ state).reshape(x.shape[0], -1, WIDTH)[:, : x.shape[1]]


class SoftmaxOverKeys(Attention):
    """Keys are normalized by the largest of all keys, which cancels."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x).softmax(-1), self.k(x), self.v(x)
        e = torch.exp(k - k.amax(1, keepdim=True))
        return q * (e * v).cumsum(1) / e.cumsum(1)


class SoftmaxOverAllKeys(Attention):
    """The sum of all keys does not cancel."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x).softmax(-1), self.k(x), self.v(x)
        return q * (k.softmax(1) * v).cumsum(1)


class DeltaRule(Attention):
    """A unit lower triangular system in each chunk."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        k, v = F.normalize(self.k(x), dim=-1), self.v(x)
        a = (k @ k.transpose(1, 2)).tril(-1) + torch.eye(n)
        u = torch.linalg.solve_triangular(a, v, upper=False, unitriangular=True)
        return (self.q(x) @ k.transpose(1, 2)).tril() @ u


class DeltaRuleDiagonal(Attention):
    """The same system with the diagonal of ones given in the matrix."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        k, v = F.normalize(self.k(x), dim=-1), self.v(x)
        a = (k @ k.transpose(1, 2)).tril(-1) + torch.eye(n)
        u = torch.linalg.solve_triangular(a, v, upper=False)
        return (self.q(x) @ k.transpose(1, 2)).tril() @ u


class DeltaRuleInverse(Attention):
    """The same by an inverse."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        k, v = F.normalize(self.k(x), dim=-1), self.v(x)
        a = (k @ k.transpose(1, 2)).tril(-1) + torch.eye(n)
        return (self.q(x) @ k.transpose(1, 2)).tril() @ (torch.inverse(a) @ v)


class DeltaRuleFull(Attention):
    """The system is not triangular."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        k, v = F.normalize(self.k(x), dim=-1), self.v(x)
        a = (k @ k.transpose(1, 2)) + torch.eye(n)
        return (self.q(x) @ k.transpose(1, 2)).tril() @ (torch.inverse(a) @ v)


IDIOMS = {
    "running sum": Idiom(RunningSum, AllKeys),
    "chunks": Idiom(Chunked, ChunkedOwn),
    "softmax over keys": Idiom(SoftmaxOverKeys, SoftmaxOverAllKeys),
    "delta rule": Idiom(DeltaRule, DeltaRuleFull),
    "delta rule, diagonal given": Idiom(DeltaRuleDiagonal),
    "delta rule, inverse": Idiom(DeltaRuleInverse),
}
