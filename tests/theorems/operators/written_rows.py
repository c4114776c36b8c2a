"""Programs that write tokens at one index after the other; and some that write them elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import WIDTH, Case, Program

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def put(m: Program, x: Tensor, places: Tensor, source: Tensor) -> Tensor:
    """Tokens, and others that are written over some of them."""
    written = m.first(x)
    written[:, places] = source
    return written


def tokens(x: Tensor) -> Tensor:
    """The index of each token."""
    return torch.arange(x.shape[1])


def in_a_fixed_cache(m: Program, x: Tensor, *, far: int = 0) -> Tensor:
    """Attention to a cache of fixed size, into which the tokens are written."""
    place = tokens(x)
    k, v = (x.new_zeros(x.shape[0], 64, WIDTH).index_copy(1, place, f(x)) for f in (m.second, m.third))
    hidden = torch.arange(64) > place[:, None] + far
    return (m.first(x) @ k.mT).masked_fill(hidden, float("-inf")).softmax(-1) @ v


def one_later(m: Program, x: Tensor) -> Tensor:
    """All tokens but the first of those in reverse are replaced."""
    return m.first(x.flip(1)).index_copy(1, tokens(x)[1:], m.second(x)[:, :-1])


def few_over(m: Program, x: Tensor) -> Tensor:
    """The first two of tokens in reverse are replaced."""
    return m.first(x.flip(1)).index_copy(1, tokens(x)[:2], m.second(x)[:, :2])


PROGRAMS = [
    Case("few copied over others", few_over, NOT_CAUSAL),
    Case("cache of fixed size", in_a_fixed_cache, CAUSAL, greatest=64),
    Case("cache of fixed size, one too far", lambda m, x: in_a_fixed_cache(m, x, far=1), NOT_CAUSAL, greatest=64),
    Case("written at their own places", lambda m, x: put(m, x, tokens(x), m.second(x)), CAUSAL),
    Case("written one place later", lambda m, x: put(m, x, tokens(x)[1:], m.second(x)[:, :-1]), CAUSAL),
    Case("written one place earlier", lambda m, x: put(m, x, tokens(x)[:-1], m.second(x)[:, 1:]), NOT_CAUSAL),
    Case("copied to their own places", lambda m, x: m.first(x).index_copy(1, tokens(x), m.second(x)), CAUSAL),
    Case("copied in reverse", lambda m, x: m.first(x).index_copy(1, tokens(x), m.second(x).flip(1)), NOT_CAUSAL),
    Case("last token copied one place later", one_later, NOT_CAUSAL),
    Case("one number written", lambda m, x: put(m, x, tokens(x)[:2], m.sink), CAUSAL),
    Case("written from the end", lambda m, x: put(m, x, -1 - tokens(x), m.second(x)) + x.mean(), frozenset()),
    Case("written where they were", lambda m, x: put(m, x, tokens(x)[1:], m.second(x)[:, 1:]), CAUSAL),
    Case("last of all written first", lambda m, x: put(m, x, tokens(x), m.second(x).flip(1)), NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.operators.scatter.scatter",
    M("written_without_their_shift", "terms.append(at - start)", "terms.append(at)", program="written where they were"),
    M("written_beyond_the_last", "less(at, start + count)", "at_most(start, at)", program="few copied over others"),
    M("written_before_the_first", "at_most(start, at)", "at_most(0, at)", program="last token copied one place later"),
)
