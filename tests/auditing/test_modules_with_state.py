"""Modules that keep state between calls: a law is about one call, in the state in which it was recorded."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from tests.auditing.law_pairs import VECTORS, verdicts


class CachedAttention(nn.Module):
    """Attention to the tokens of all calls; keys in an attribute."""

    def __init__(self, *, future: bool = False) -> None:
        super().__init__()
        self.keys, self.future = nn.Linear(16, 16), future
        self.cache: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        keys = self.keys(x)
        self.cache = keys if self.cache is None else torch.cat([self.cache, keys], 1)
        return attended(x, self.cache, future=self.future)


class CachedInBuffer(nn.Module):
    """The same with keys in a buffer, and a counter."""

    def __init__(self, *, future: bool = False) -> None:
        super().__init__()
        self.keys, self.future = nn.Linear(16, 16), future
        self.register_buffer("cache", torch.zeros(2, 32, 16))
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        end = self.seen + x.shape[1]
        self.cache[:, self.seen : end] = self.keys(x)
        self.seen = end
        return attended(x, self.cache[:, :end], future=self.future)


def attended(queries: Tensor, keys: Tensor, *, future: bool) -> Tensor:
    count, total = queries.shape[1], keys.shape[1]
    visible = torch.ones(count, total, dtype=torch.bool).tril(total - count + future)
    return (queries @ keys.mT).masked_fill(~visible, -torch.inf).softmax(-1) @ keys


@pytest.mark.parametrize("kind", [CachedAttention, CachedInBuffer])
def test_the_runs_of_a_law_begin_in_the_recorded_state(kind: type[nn.Module]) -> None:
    assert verdicts(kind(), ["causal", "batch"]) == {"causal": "proved", "batch": "proved"}
    assert verdicts(kind(future=True), ["causal"]) == {"causal": "refuted"}


def test_a_cache_that_holds_tokens_is_the_same_in_both_runs() -> None:
    module = CachedAttention()
    module(VECTORS[:, :3])
    kept = module.cache
    assert verdicts(module, ["causal", "batch"]) == {"causal": "proved", "batch": "proved"}
    assert module.cache is kept


class AddsTheLastToken(nn.Module):
    """Adds the token with which the last call ended, which it keeps in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.last
        self.last = x[0, -1].detach().clone()
        return y


def test_no_law_finds_the_state_that_another_one_left() -> None:
    module = AddsTheLastToken()
    report = audit(
        module, laws=["permutation", "prompt_permutation", "causal", "batch", "stateless"], inputs=(VECTORS,)
    )
    found = {f.law: f for f in report.findings}
    assert {law: f.verdict for law, f in found.items()} == dict.fromkeys(found, "proved") | {"stateless": "refuted"}
    for finding in found.values():
        if finding.law != "stateless":
            assert "of one call: the call changes last" in finding.scope.assumptions
            assert finding.deviation.float32 == finding.deviation.float64 == 0
    assert torch.equal(module.last, torch.zeros(16))
