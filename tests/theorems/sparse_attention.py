"""Programs whose mask depends on tokens: attention to the keys that a first set of scores selects."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import Case, Program, index, lower


def selected(m: Program, x: Tensor, visible: Tensor | None) -> Tensor:
    """[row, query, key] true at the two keys with the largest scores, of those that are visible."""
    scores = m.second(x) @ m.third(x).mT
    if visible is not None:
        scores = scores.masked_fill(~visible, float("-inf"))
    places = scores.topk(2, dim=-1).indices
    return ~torch.ones_like(scores, dtype=torch.bool).scatter(-1, places, False)


def attend(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Fused attention with a mask of booleans; zero where it excludes every key."""
    return F.scaled_dot_product_attention(m.first(x)[:, None], x[:, None], m.third(x)[:, None], mask[:, None])[:, 0]


def _real(x: Tensor, mask: Tensor) -> Tensor:
    return lower(x) & mask[:, None, :].bool()


SPARSE = [
    Case(
        "keys selected of the visible ones",
        lambda m, x: attend(m, x, lower(x) & selected(m, x, lower(x))),
        frozenset({"causal", "batch"}),
    ),
    Case(
        "keys selected of all, then hidden",
        lambda m, x: attend(m, x, lower(x) & selected(m, x, None)),
        frozenset({"batch"}),
    ),
    Case(
        "keys that are selected or visible",
        lambda m, x: attend(m, x, lower(x) | selected(m, x, None)),
        frozenset({"batch"}),
    ),
    Case(
        "keys before the query",
        lambda m, x: attend(m, x, (index(x)[1] < index(x)[0]) & selected(m, x, lower(x))),
        frozenset({"causal", "batch"}),
    ),
    Case(
        "keys selected over all rows",
        lambda m, x: attend(m, x, lower(x) & selected(m, x, lower(x)).any(0, keepdim=True)),
        frozenset({"causal"}),
    ),
    Case(
        "real keys selected of the visible ones",
        lambda m, x, mask: attend(m, x, _real(x, mask) & selected(m, x, _real(x, mask))),
        frozenset({"causal", "padding", "batch"}),
        masked=True,
    ),
    Case(
        "real keys selected of pads too",
        lambda m, x, mask: attend(m, x, _real(x, mask) & selected(m, x, lower(x))),
        frozenset({"causal", "batch"}),
        masked=True,
    ),
]
