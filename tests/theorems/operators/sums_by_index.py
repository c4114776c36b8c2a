"""Tokens that are added at an index, and what is read of the sums."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import WIDTH, Case, Program

BOTH, IN_ROWS = frozenset({"causal", "batch"}), frozenset({"batch"})


def _segments(x: Tensor, size: int = 2) -> Tensor:
    return torch.arange(x.shape[1]) // size


def _sums(m: Program, x: Tensor, segment: Tensor) -> Tensor:
    """The sum of the tokens of each segment, one segment more than there may be."""
    zeros = x.new_zeros(x.shape[0], x.shape[1] // 2 + 1, WIDTH)
    return zeros.index_add(1, segment, m.first(x))


def _read(m: Program, x: Tensor, before: int) -> Tensor:
    """Each token with the sum of a segment before its own."""
    sums = _sums(m, x, _segments(x))
    later = torch.cat([sums.new_zeros(x.shape[0], before, WIDTH), sums], 1)
    return x + later.index_select(1, _segments(x))


def _by_their_own(m: Program, x: Tensor) -> Tensor:
    return m.second(x).index_add(1, torch.arange(x.shape[1]), m.first(x), alpha=0.5)


def _at(m: Program, x: Tensor, places: Tensor, reduce: str) -> Tensor:
    """Each token reduced with those whose index is its own: `places` has one index for each token and feature."""
    return m.second(x).scatter_reduce(1, places.expand(x.shape), m.first(x), reduce)


def _of_tokens(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1])[None, :, None]


def _of_rows(m: Program, x: Tensor, mask: Tensor, shift: int = 0) -> Tensor:
    """The largest real token of each row, of all tokens in one list."""
    rows = (torch.arange(x.shape[0])[:, None] - shift).clamp(min=0).expand(x.shape[:2]).reshape(-1)
    kept = torch.where(mask.reshape(-1, 1).bool(), m.first(x).reshape(-1, WIDTH), float("-inf"))
    largest = torch.full((x.shape[0], WIDTH), float("-inf"))
    return largest.scatter_reduce(0, rows[:, None].expand(-1, WIDTH), kept, "amax")


def _real_first(m: Program, x: Tensor, mask: Tensor, spare: int = 1) -> Tensor:
    """Sums over real tokens that are written to the front; pads are written behind the row, or to its end."""
    n = x.shape[1]
    places = torch.where(mask.bool(), mask.cumsum(1) - 1, n - 1 + spare)[..., None].expand_as(x)
    return x.new_zeros(x.shape[0], n + 1, WIDTH).scatter(1, places, m.first(x))[:, :n].cumsum(1)


def _third(m: Program, x: Tensor, before: int) -> Tensor:
    """Each token with the largest of a group of three before its own; as many groups as tokens."""
    group = (torch.arange(x.shape[1]) // 3)[:, None].expand(x.shape)
    best = torch.full_like(x, -2.0).scatter_reduce(1, group, m.first(x), "amax")
    return x + torch.cat([x.new_zeros(x.shape[0], before, WIDTH), best], 1).gather(1, group)


def _classes(m: Program, x: Tensor, reduce: str, seen: int = 0, *, with_own: bool = True) -> Tensor:
    """Each token with its weights of the tokens of each class, of which later ones weigh nothing."""
    b, n, _ = x.shape
    weights = (m.first(x) @ m.second(x).mT).tril(seen)
    to = _kinds(x)[:, None].expand(b, n, n)
    own = x.new_full((b, n, 2), -99.0)
    return m.first(x) + own.scatter_reduce(2, to, weights, reduce, include_self=with_own).sum(-1, keepdim=True)


def _put(m: Program, x: Tensor, places: Tensor, rows: Tensor | None = None, *, add: bool = True) -> Tensor:
    """Tokens put at places of their rows, or of others."""
    rows = torch.arange(x.shape[0])[:, None] if rows is None else rows
    return m.second(x).index_put((rows.expand(x.shape[:2]), places.expand(x.shape[:2])), m.first(x), accumulate=add)


def _put_moved(m: Program, x: Tensor, kinds: Tensor, *, add: bool = True) -> Tensor:
    """Each token with what is put at the first of three places of its row."""
    rows = torch.arange(x.shape[0])[:, None].expand(x.shape[:2])
    put = x.new_zeros(x.shape[0], 3, WIDTH).index_put((rows, kinds.expand(rows.shape)), m.first(x), accumulate=add)
    return x + put[:, :1]


def _kinds(x: Tensor) -> Tensor:
    """0 or 1 for each token, by its first number."""
    return (x[..., 0] > 0).long()


PROGRAMS = [
    Case("weights added at classes", lambda m, x: _classes(m, x, "sum"), BOTH),
    Case("weights added at classes, one too far", lambda m, x: _classes(m, x, "sum", 1), IN_ROWS),
    Case("weights of classes in place of others", lambda m, x: _classes(m, x, "sum", with_own=False), IN_ROWS),
    Case("largest weight of each class", lambda m, x: _classes(m, x, "amax"), IN_ROWS),
    Case("put at the own place", lambda m, x: _put(m, x, torch.arange(x.shape[1])), BOTH),
    Case("put at the own place, in place of others", lambda m, x: _put(
        m, x, torch.arange(x.shape[1]), add=False), BOTH),
    Case("put at the place before", lambda m, x: _put(m, x, (torch.arange(x.shape[1]) - 1).clamp(min=0)), IN_ROWS),
    Case("put at places from the end", lambda m, x: _put(m, x, -1 - torch.arange(x.shape[1])), IN_ROWS),
    Case("put at a class of the row", lambda m, x: _put(m, x, _kinds(x)), IN_ROWS),
    Case("put at a class of the first row", lambda m, x: _put(m, x, _kinds(x), torch.zeros(1, 1).long()), frozenset()),
    Case("counts in a row by class", lambda m, x: m.first(x).index_put(
        (_kinds(x), torch.arange(x.shape[1])), m.sink, accumulate=True), frozenset({"causal"})),
    Case("put in a row by its class", lambda m, x: _put(m, x, torch.arange(x.shape[1]), _kinds(x)),
         frozenset({"causal"})),
    Case("real tokens written to the front", _real_first, frozenset({"padding", "batch"}),
         masked=True),
    Case("pads written to the last place", lambda m, x, a: _real_first(m, x, a, 0), IN_ROWS, masked=True),
    Case("written over themselves", lambda m, x: m.second(x).scatter(
        1, _of_tokens(x).expand(x.shape), m.first(x)), BOTH),
    Case("written to the place before", lambda m, x: m.second(x).scatter(
        1, (_of_tokens(x) - 1).clamp(min=0).expand(x.shape), m.first(x)), IN_ROWS),
    Case("largest of the three before", lambda m, x: _third(m, x, 1), BOTH),
    Case("largest of the own three", lambda m, x: _third(m, x, 0), IN_ROWS),
    Case("largest of each row", _of_rows, frozenset({"padding", "batch"}), masked=True, pooled=True),
    Case("largest of the row before", lambda m, x, a: _of_rows(m, x, a, 1), frozenset({"padding"}), masked=True,
         pooled=True),
    Case("products at their own places", lambda m, x: _at(m, x, _of_tokens(x), "prod"), BOTH),
    Case("largest at the place before", lambda m, x: _at(m, x, (_of_tokens(x) - 1).clamp(min=0), "amax"), IN_ROWS),
    Case("sums of half of the features", lambda m, x: m.first(x).scatter_add(
        1, _of_tokens(x).expand(x.shape)[..., :3], m.first(x).flip(1)), IN_ROWS),
    Case("sums of the segment before", lambda m, x: _read(m, x, 1), BOTH),
    Case("sums of the own segment", lambda m, x: _read(m, x, 0), IN_ROWS),
    Case("sums at their own places", _by_their_own, BOTH),
    Case("sums at the place before", lambda m, x: m.second(x).index_add(
        1, (torch.arange(x.shape[1]) - 1).clamp(min=0), m.first(x)), IN_ROWS),
    Case("sums over others", lambda m, x: m.second(x).flip(1).index_add(
        1, torch.arange(x.shape[1]), m.first(x)), IN_ROWS),
]  # fmt: skip
MOVED_PROGRAMS = [
    MovedCase("sums of classes put at their index", lambda m, x, p: _put_moved(m, x, p.remainder(3))),
    MovedCase("last of classes put at their index", lambda m, x, p: _put_moved(m, x, p.remainder(3), add=False),
              equivariant=False),
    MovedCase("sums put at indices of places", lambda m, x, p: _put_moved(m, x, torch.arange(x.shape[1]) % 3),
              equivariant=False),
    MovedCase("a number put at the first place", lambda m, x, p: m.first(x).index_put(
        (torch.arange(x.shape[0]), torch.zeros(1).long()), m.sink, accumulate=True), equivariant=False),
    MovedCase("tokens put at places from the end", lambda m, x, p: _put(m, x, torch.arange(x.shape[1]).flip(0)),
              equivariant=False),
]  # fmt: skip
MUTANTS = mutants_of(
    "theorems.operators.scatter.sums_by_index",
    M("only_elements_elsewhere", "disjunction(placed & term.same, elsewhere, vanishes)",
      "disjunction(placed & term.same, negation(elsewhere), vanishes)", program="sums at their own places"),
    M("elements_of_another_row", "disjunction(placed & term.same, elsewhere, vanishes)", "~FALSE",
      program="largest of the row before", quick=True),
    M("indices_that_differ", "disjunction(placed & term.same, elsewhere, vanishes)",
      "disjunction(term.same, elsewhere, vanishes)", program="counts in a row by class"),
    M("zeros_count_where_nothing_was", "call.argument(5, 'include_self', True) is True", "True",
      program="weights of classes in place of others"),
    M("zeros_that_are_compared", "term.ranges().zero if _adds(call) else FALSE", "term.ranges().zero",
      program="largest weight of each class", quick=True),
    M("what_was_there_does_not_count", "conjunction(base.same, agrees)", "agrees", program="sums over others"),
    M("places_from_the_start", "from_start(call, at.value, common.axes[d][0], base.sizes)", "at.value",
      program="put at places from the end"),
    M("written_in_any_order", 'call.argument(3, "accumulate", False) is not True', "False",
      program="moved: last of classes put at their index"),
    M("index_of_a_token", "still(fact.dims[dim], BY_INDEX)", "fact.dims[dim]",
      program="moved: a number put at the first place"),
)  # fmt: skip
