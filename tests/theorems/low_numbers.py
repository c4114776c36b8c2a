"""Programs with numbers that are ordinary, or as low as a mask, and it is not known which."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.theorems.programs import WIDTH, Case, Program, attend, lower

MASK = -1e9


def _scores(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    visible = lower(x) & mask[:, None, :].bool()
    return (m.first(x) @ m.second(x).mT / WIDTH**0.5).masked_fill(~visible, MASK)


def _sunk(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Two layers with a sink, as a factor of the logarithm of each row's sum; all of a pad's row may be hidden."""
    for _ in range(2):
        scores = _scores(m, x, mask)
        weight = (scores.logsumexp(-1) - m.sink).sigmoid()
        x = x + (scores.softmax(-1) @ m.third(x)) * weight[..., None]
    return x


def _capped(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The same with the greatest score of each row, and tanh."""
    for _ in range(2):
        scores = _scores(m, x, mask)
        x = x + (scores.softmax(-1) @ m.third(x)) * (scores.max(-1).values * 0.5 + 1).tanh()[..., None]
    return x


def _router_scores(m: Program, x: Tensor) -> Tensor:
    """The two greatest logits of each token; minus infinity for the others."""
    logits = m.first(x)
    values, chosen = logits.topk(2, dim=-1)
    return torch.full_like(logits, float("-inf")).scatter(-1, chosen, values)


def _routed(m: Program, x: Tensor) -> Tensor:
    """A mixture of experts, and causal attention after it."""
    x = x + _router_scores(m, x).sigmoid() * m.second(x)
    return attend(m, x, lower(x), fill=MASK)


def _routed_by_softmax(m: Program, x: Tensor) -> Tensor:
    """The same with weights that add to one, next to an expert that every token uses."""
    scores = torch.cat([m.third(x)[..., :1], _router_scores(m, x)], -1)
    x = x + scores.softmax(-1)[..., 1:] * m.second(x)
    return attend(m, x, lower(x), fill=MASK)


def _lowered_keys(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """What lowers the row of a pad raises its key: a hidden score is visible again."""
    scores = _scores(m, x, mask).masked_fill(~mask[:, :, None].bool(), MASK)
    return (scores - scores.logsumexp(-1)[:, None, :]).softmax(-1) @ m.third(x)


def _low_scores(m: Program, x: Tensor) -> Tensor:
    """Each token sees some of the tokens before it, perhaps none: then later ones, with finite scores, are left."""
    n = x.shape[1]
    scores = m.first(x) @ m.second(x).mT
    bias = torch.full((n, n), float("-inf")).scatter(1, torch.arange(n).flip(0)[:, None], 0.0)
    return (scores + bias).masked_fill(~lower(x), MASK).softmax(-1) @ m.third(x)


def _case(name: str, function: object, *laws: str, masked: bool = False) -> Case:
    return Case(name, function, frozenset(laws), masked)  # type: ignore[arg-type]


LOW = [
    _case("sink by the logarithm of a sum", _sunk, "causal", "padding", "batch", masked=True),
    _case("greatest score of a row", _capped, "causal", "padding", "batch", masked=True),
    _case("router that writes logits", _routed, "causal", "batch"),
    _case("router with softmax", _routed_by_softmax, "causal", "batch"),
    _case("keys less their rows", _lowered_keys, "batch", masked=True),
    _case("low scores of visible tokens", _low_scores, "batch"),
]
