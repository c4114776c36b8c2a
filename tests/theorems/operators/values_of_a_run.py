"""Programs whose masks compare numbers that are computed from tokens, as the ids of documents are.

Where hidden scores are finite, a row without a visible key shows later tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, attend, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def ids(x: Tensor, feature: int = 0) -> Tensor:
    """The number of the document of each token: a large number in a feature begins one."""
    return (x[..., feature] > 0.5).cumsum(1)


def among(m: Program, x: Tensor, first: Tensor, second: Tensor | None = None) -> Tensor:
    """Attention to keys up to the query whose number equals that of the query."""
    second = first if second is None else second
    return attend(m, x, (first[:, :, None] == second[:, None, :]) & lower(x), fill=-1e9)


def counted_before_separators(m: Program, x: Tensor) -> Tensor:
    """Documents that their separator ends."""
    ends = x[..., 0] > 0.5
    document = ends.cumsum(1) - ends.long()
    return among(m, x, document)


def only_before(m: Program, x: Tensor) -> Tensor:
    """Attention to keys before the query with its number, which the first token of a document does not have."""
    own, before = ids(x), x[:, :-1]
    visible = (own[:, 1:, None] == own[:, None, :-1]) & lower(before)
    scores = (m.first(x[:, 1:]) @ m.second(before).mT).masked_fill(~visible, -1e9)
    return torch.cat([x[:, :1], scores.softmax(-1) @ m.third(before)], 1)


def next_number(m: Program, x: Tensor) -> Tensor:
    """Attention to the document before, which the first tokens do not have."""
    own = ids(x)
    return among(m, x, own, own + 1)


def by_a_difference(m: Program, x: Tensor) -> Tensor:
    """Attention within documents by a mask of floats that is added."""
    own = ids(x)
    different = (own[:, None, :] - own[:, :, None]) != 0
    scores = m.first(x) @ m.second(x).mT + (different | ~lower(x)).to(x.dtype) * -1e9
    return scores.softmax(-1) @ m.third(x)


def by_order(m: Program, x: Tensor, *, strictly: bool) -> Tensor:
    """Attention to keys with no larger number than the query, or to those with a smaller one."""
    own = ids(x)
    query, key = own[:, :, None], own[:, None, :]
    return attend(m, x, ((key < query) if strictly else (key <= query)) & lower(x), fill=-1e9)


def first_of_each_run(m: Program, x: Tensor) -> Tensor:
    """Attention to tokens that begin a run of equal signs: the first one does."""
    sign = x[..., 0] > 0
    begins = torch.cat([torch.ones_like(sign[:, :1]), sign[:, 1:] != sign[:, :-1]], 1)
    return attend(m, x, begins[:, None, :] & lower(x), fill=-1e9)


def opened_by_all_tokens(m: Program, x: Tensor) -> Tensor:
    """Attention to all tokens of rows with a large sum."""
    large = (x.sum((1, 2)) > 0)[:, None, None].expand(-1, x.shape[1], -1)
    return attend(m, x, large | lower(x))


def token_of_a_choice(m: Program, x: Tensor) -> Tensor:
    """One of two tensors, as all tokens choose."""
    large = (x.sum(1, keepdim=True) > 0).expand(-1, x.shape[1], -1)
    return torch.where(large, m.first(x), m.second(x))


def blocks(m: Program, x: Tensor, others: int | None) -> Tensor:
    """Attention to the best block of keys before that of the query, and to a block counted from its own."""
    i, size = torch.arange(x.shape[1]), 2
    means = F.pad(m.second(x), (0, 0, 0, -x.shape[1] % size)).unflatten(1, (-1, size)).mean(2)
    own, block = i[:, None] // size, torch.arange(means.shape[1])
    scores = (m.first(x) @ means.mT).masked_fill(block >= own, -1e9)
    chosen = (scores >= scores.amax(-1, keepdim=True)) & (block < own)
    chosen = chosen if others is None else chosen | (block == own + others)
    return attend(m, x, chosen.repeat_interleave(size, -1)[..., : x.shape[1]] & lower(x), fill=-1e9)


PROGRAMS = [
    Case("best block and the own one", lambda m, x: blocks(m, x, 0), CAUSAL, least=5),
    Case("best block before the own one", lambda m, x: blocks(m, x, None), NOT_CAUSAL, least=5),
    Case("best block and the next one", lambda m, x: blocks(m, x, 1), NOT_CAUSAL, least=5),
    Case("documents of tokens", lambda m, x: among(m, x, ids(x)), CAUSAL),
    Case("documents of separators", counted_before_separators, CAUSAL),
    Case("documents by a difference", by_a_difference, CAUSAL),
    Case("documents before the query", only_before, NOT_CAUSAL, least=3),
    Case("documents of two features", lambda m, x: among(m, x, ids(x), ids(x, 1)), NOT_CAUSAL),
    Case("no larger number", lambda m, x: by_order(m, x, strictly=False), CAUSAL),
    Case("a smaller number", lambda m, x: by_order(m, x, strictly=True), NOT_CAUSAL),
    Case("number after another", next_number, NOT_CAUSAL),
    Case("begins of runs", first_of_each_run, CAUSAL),
    Case("mask opened by all tokens", opened_by_all_tokens, NOT_CAUSAL),
    Case("choice of all tokens", token_of_a_choice, NOT_CAUSAL),
]
MUTANTS = [
    *mutants_of(
        "theorems.walks.values_of_a_run",
        M("other_functions_are_equal", "rest.is_constant", "True", program="documents of two features"),
        M("numbers_that_differ", "rest.constant == 0", "rest.constant != 0", program="number after another",
          quick=True),
        M("functions_of_a_run_are_shared", "not any(name.endswith(OF_A_RUN) for name in formula.functions)", "True",
          program="choice of all tokens"),
        M("either_choice_is_sure", "certain(~test)", "~FALSE", program="choice of all tokens"),
    ),
]  # fmt: skip
