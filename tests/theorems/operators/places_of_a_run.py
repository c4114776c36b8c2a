"""Tokens that are read at indices computed from tokens: from earlier places, and from any."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

BOTH, IN_ROWS = frozenset({"causal", "batch"}), frozenset({"batch"})


def _places(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1])


def _back(x: Tensor) -> Tensor:
    """How many places each token looks back: 0, 1 or 2."""
    return x[..., :3].argmax(-1)


def _marked(x: Tensor, other: int = 0) -> Tensor:
    """The place of each token that is marked by its first number; another place for other tokens."""
    return torch.where(x[..., 0] > 0, _places(x), other)


def _gathered(m: Program, x: Tensor, index: Tensor) -> Tensor:
    return x + m.first(x).gather(1, index.clamp(0, x.shape[1] - 1)[..., None].expand_as(x))


def _at(m: Program, x: Tensor, index: Tensor) -> Tensor:
    return x + m.first(x)[torch.arange(x.shape[0])[:, None], index]


PROGRAMS = [
    Case("a token before, chosen by the token", lambda m, x: _gathered(m, x, _places(x) - _back(x)), BOTH),
    Case("a token around, chosen by the token", lambda m, x: _gathered(m, x, _places(x) + 1 - _back(x)), IN_ROWS),
    Case("a token before, by index", lambda m, x: _at(m, x, (_places(x) - _back(x)).clamp(min=0)), BOTH),
    Case("a token before, or from the end", lambda m, x: _at(m, x, _places(x) - _back(x)), IN_ROWS),
    Case("the token with the largest number", lambda m, x: _gathered(
        m, x, x[..., 0].argmax(1, keepdim=True).expand(x.shape[:2])), IN_ROWS),
    Case("last marked token", lambda m, x: _gathered(m, x, _marked(x).cummax(1).values), BOTH),
    Case("last marked token, by its index", lambda m, x: _gathered(m, x, _marked(x).cummax(1).indices), BOTH),
    Case("token before the last marked one", lambda m, x: _gathered(m, x, _marked(x).cummax(1).values - 1), BOTH),
    Case("token after the last marked one", lambda m, x: _gathered(m, x, _marked(x).cummax(1).values + 1), IN_ROWS),
    Case("last marked token of all, found from the end", lambda m, x: _gathered(
        m, x, _marked(x.flip(1)).cummax(1).values), IN_ROWS),
    Case("next marked token", lambda m, x: _gathered(
        m, x, _marked(x, x.shape[1]).flip(1).cummin(1).values.flip(1)), IN_ROWS),
    Case("first marked token", lambda m, x: _gathered(m, x, torch.minimum(
        _marked(x, x.shape[1]).cummin(1).values, _places(x))), BOTH),
    Case("token after the last marked one, by numbers", lambda m, x: _gathered(
        m, x, _marked(x + 1, 1).add(1).cummax(1).values), IN_ROWS),
    Case("places counted from the end", lambda m, x: _gathered(
        m, x, (x.shape[1] - 1 - _marked(x)).cummax(1).values), IN_ROWS),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.facts.places_of_a_run",
        M("index_from_one", "at_most(0, place) & less(place, self.size)", "at_most(1, place) & less(place, self.size)",
          program="a token around, chosen by the token", quick=True),
        M("a_number_before", "at_most(place, own)", "less(place, own)", program="token after the last marked one"),
    ),
    *mutants_of(
        "theorems.operators.lookup.indexing",
        M("no_index_of_a_run", "negation(equal(from_start(call, at.value, common.axes[along][0], at.sizes), place))",
          "~FALSE", program="token after the last marked one"),
        M("runs_count_from_the_start", "from_start(call, at.value, common.axes[along][0], at.sizes)",
          "at.value",
          program="a token before, or from the end"),
    ),
    *mutants_of(
        "theorems.walks.extreme_places",
        M("numbers_of_an_index", "value if part == 0 and isinstance(value, Term) else None", "None",
          program="token after the last marked one, by numbers"),
    ),
]  # fmt: skip
