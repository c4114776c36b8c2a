"""Fused attention in which two heads of queries share one of keys and values, and the heads of keys differ."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Case, Program


def _attend(m: Program, x: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
    """Four heads of queries; as many heads of keys as values."""
    queries, keys = torch.stack([m.first(x)] * 4, 1), torch.stack([m.second(x)] * len(values), 1)
    found = F.scaled_dot_product_attention(queries, keys, torch.stack(values, 1), is_causal=True, enable_gqa=True)
    return found.unbind(1)


def _shifted(m: Program, x: Tensor) -> Tensor:
    """The second head of values is of the token before."""
    return torch.stack(_attend(m, x, m.third(x), F.pad(x, (0, 0, 1, 0))[:, :-1])).sum(0)


def _second_head(m: Program, x: Tensor) -> Tensor:
    """The third head of queries reads later tokens."""
    return _attend(m, x, m.third(x), x.flip(1))[2]


def _last_head(m: Program, x: Tensor) -> Tensor:
    return _attend(m, x, x.flip(1), m.third(x))[1] * WIDTH


SHARED_HEADS = [
    Case("heads of queries that share one of values", _shifted, frozenset({"causal", "batch"})),
    Case("the second of two shared heads", _second_head, frozenset({"batch"})),
    Case("the first of two shared heads", _last_head, frozenset({"batch"})),
]
