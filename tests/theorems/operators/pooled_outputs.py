"""Programs whose output is one vector for each row; and some that read pads, or a token that may be one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

INF = float("-inf")


def _mean(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    weights = mask[..., None].to(x.dtype)
    return (m.first(x) * weights).sum(1) / weights.sum(1).clamp(min=1)


def _weighted(m: Program, x: Tensor, seen: Tensor, fill: float = INF) -> Tensor:
    weights = m.first(x)[..., 0].masked_fill(~seen, fill).softmax(1)
    return torch.einsum("bt,btd->bd", weights, m.second(x))


def _after_attention(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    scores = (m.first(x) @ m.second(x).mT).masked_fill(mask[:, None] == 0, INF)
    return _mean(m, scores.softmax(-1) @ m.third(x), mask)


def _class_token(m: Program, x: Tensor, mask: Tensor, *, place: int = 0) -> Tensor:
    """A token before all others, which sees the real ones; or the token after it."""
    h = torch.cat([m.first.bias.expand(x.shape[0], 1, -1), x], 1)
    seen = F.pad(mask, (1, 0), value=1).bool()
    scores = (m.first(h) @ m.second(h).mT).masked_fill(~seen[:, None], -1e9)
    return (scores.softmax(-1) @ m.third(h))[:, place]


def _others(x: Tensor, mask: Tensor) -> Tensor:
    """The real tokens but the first token: perhaps none."""
    return mask.bool() & (torch.arange(x.shape[1]) > 0)


def _case(name: str, function: object, *laws: str) -> Case:
    return Case(name, function, frozenset(laws), masked=True, pooled=True)  # type: ignore[arg-type]


PROGRAMS = [
    _case("pooled, class token", _class_token, "padding", "batch"),
    _case("pooled, token after the class token", lambda m, x, mask: _class_token(m, x, mask, place=1), "batch"),
    _case("pooled, mean of real tokens", _mean, "padding", "batch"),
    _case("pooled, weights of real tokens", lambda m, x, mask: _weighted(m, x, mask.bool()), "padding", "batch"),
    _case("pooled, mean after attention", _after_attention, "padding", "batch"),
    _case("pooled, the first token", lambda m, x, mask: m.first(x)[:, 0] * mask.any(), "batch"),
    _case("pooled, weights, then the mask", lambda m, x, mask: _mean(m, m.first(x).softmax(1), mask), "batch"),
    _case("pooled, weights of others", lambda m, x, mask: _weighted(m, x, _others(x, mask), -1e9), "batch"),
]
MUTANTS = [
    *mutants_of(
        "theorems.agreement",
        M(
            "first_token_for_a_row",
            "index(tokens[0]) if tokens else statement.pooled",
            "index(tokens[0]) if tokens else index(rows[0]) * 0",
            program="pooled, the first token",
        ),
    ),
    *mutants_of(
        "theorems.operators.softmax.masked_rows",
        M(
            "real_token_of_the_next_row",
            "places.append(context.real_token)",
            "places.append(context.real_token + 1)",
            program="pooled, weights of real tokens",
        ),
    ),
    *mutants_of(
        "laws.proved.padding",
        M(
            "real_token_after_the_row",
            "less(REAL_TOKEN, TOKENS)",
            "at_most(REAL_TOKEN, TOKENS)",
            program="pooled, weights of real tokens",
        ),
    ),
]
