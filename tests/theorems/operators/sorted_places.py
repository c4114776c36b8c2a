"""Rows and tokens in the order of numbers that both runs have, and put back."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

ROWS = frozenset({"batch"})
ALL, NO_ROWS = frozenset({"causal", "padding", "batch"}), frozenset({"causal"})
PADS = frozenset({"padding", "batch"})


def _at(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[2]))


def _sums_before(m: Program, x: Tensor) -> Tensor:
    return m.first(x).cumsum(1)


def _packed(m: Program, x: Tensor, mask: Tensor, *, first: bool = True) -> Tensor:
    """Sums over real tokens that are moved to the front, or pads that are, at the places of the tokens."""
    real, order = mask.long().sort(dim=1, descending=first)
    return _at(_sums_before(m, _at(x, order) * real[..., None]), order.argsort(1))


def _pads_counted(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    real, order = mask.long().sort(dim=1)
    return _at(_sums_before(m, _at(x, order) * real.flip(1)[..., None]), order.argsort(1))


def _moved_by_two(m: Program, x: Tensor, back: bool = True) -> Tensor:
    i = torch.arange(x.shape[1])
    order = torch.where(i < 2, i + x.shape[1] - 2, i - 2)
    return m.first(x[:, order])[:, order.argsort() if back else order]


def _no_order(m: Program, x: Tensor) -> Tensor:
    """Numbers of which two are equal: the second token comes twice, and the first one nowhere."""
    numbers = torch.arange(x.shape[1]).clamp(min=1)
    return m.first(x[:, numbers])[:, numbers.argsort()]


def _by_length(m: Program, x: Tensor, mask: Tensor, back: Callable[[Tensor], Tensor] = torch.argsort) -> Tensor:
    """Rows in the order of their lengths, and then in another order."""
    order = mask.sum(1).argsort(descending=True)
    return m.first(x[order])[back(order)]


def _by_length_scattered(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    order = mask.sum(1).argsort(descending=True)
    return torch.zeros_like(x).scatter(0, order[:, None, None].expand_as(x), m.first(x[order]))


PROGRAMS = [
    Case("rows by length, put back", _by_length, ALL, masked=True),
    Case("rows by length, put back by a scatter", _by_length_scattered, ALL, masked=True),
    Case("rows by length, left so", lambda m, x, a: _by_length(m, x, a, lambda _: torch.arange(len(x))), NO_ROWS,
         masked=True),
    Case("rows by length, put back twice", lambda m, x, a: _by_length(m, x, a, lambda o: o.argsort().argsort()),
         NO_ROWS, masked=True),
    Case("rows by length, put back from the end", lambda m, x, a: _by_length(
        m, x, a, lambda o: o.argsort(descending=True)), NO_ROWS, masked=True),
    Case("real tokens first, put back", _packed, PADS, masked=True),
    Case("pads first, put back", lambda m, x, a: _packed(m, x, a, first=False), PADS, masked=True),
    Case("pads first, taken for real ones", _pads_counted, ROWS, masked=True),
    Case("tokens moved by two and back", _moved_by_two, frozenset({"causal", "batch"})),
    Case("tokens moved by two, and again", lambda m, x: _moved_by_two(m, x, back=False), ROWS),
    Case("tokens by numbers that are no order", _no_order, ROWS),
    Case("places of tokens by their own first number",
         lambda m, x: m.first(x) + x[..., 0].argsort(1)[..., None].to(x.dtype), ROWS),
    Case("tokens by their own first number", lambda m, x: m.first(_at(x, x[..., 0].argsort(1))), ROWS),
    Case("tokens by their own first number, put back", lambda m, x: _at(
        _sums_before(m, _at(x, x[..., 0].argsort(1))), x[..., 0].argsort(1).argsort(1)), ROWS),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.facts.sorted_places",
        M("nothing_is_put_back", "Substitution(terms).term(self.numbers)", "arguments[self.axis]",
          program="rows by length, put back"),
    ),
    *mutants_of(
        "theorems.walks.extreme_places",
        M("order_from_the_end",
          "not falls and isinstance(fact.value, Term) and _is_order(call.context, fact.value, axis, axes)",
          "isinstance(fact.value, Term) and _is_order(call.context, fact.value, axis, axes)",
          program="rows by length, put back from the end", quick=True),
        M("any_numbers_are_an_order", "context.proves(once, (*sizes, sizes[axis]))", "True",
          program="tokens by numbers that are no order"),
        M("other_rows_are_sorted", "call.context.loops or not call.rank or fact.same is not TRUE", "not call.rank",
          program="places of tokens by their own first number"),
    ),
]  # fmt: skip
