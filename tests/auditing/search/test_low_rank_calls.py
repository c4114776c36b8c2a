"""Comparisons of a large model after the first one have matrices of low rank, and its own where these do not hold."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from orderproof import cast_on_use
from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.search.lengths import run_at_lengths
from orderproof.auditing.search.low_rank_calls import LOW_RANK, LowRankCalls
from orderproof.cast_on_use import LowRank
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.dtype_reference import may_have_table
from orderproof.laws.measured.measured_law import OutputPair
from orderproof.models.hf.adapter import HFAdapter
from orderproof.recording import low_rank
from orderproof.tolerances import FLOAT32_TOLERANCE
from tests.models.hf.adapters import tiny_adapter

SEEN: list[tuple[str, bool]] = []  # the comparisons, and whether matrices had low rank


def has_low_rank(calls: CachedCalls) -> bool:
    return any(isinstance(p, LowRank) for p in calls.adapter.module.parameters())


def compare(name: str, *, differs: bool = False, raises: bool = False) -> Comparison:
    def run(calls: CachedCalls) -> OutputPair:
        SEEN.append((name, has_low_rank(calls)))
        if raises and has_low_rank(calls):
            raise RuntimeError("no weights of low rank")
        again = calls.uncached_call(calls.default_tokens, keep=False).output
        return calls.default_output, again + differs

    return Comparison(name, run)


class _Law(MeasuredLaw):
    of_any_weights, every_length = True, False

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield from (compare("first"), compare("second"), compare("differs", differs=True))
        yield compare("raises", raises=True)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


class _LawOfWeights(_Law):
    of_any_weights = False


class _LawWithoutControl(_Law):
    def control(self, calls: CachedCalls) -> OutputPair:
        return calls.default_output, calls.default_output


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> CachedCalls:
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(cast_on_use, "LEAST_ELEMENTS", 0)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    SEEN.clear()
    adapter = tiny_adapter("qwen2")
    return CachedCalls(adapter.with_module(copy.deepcopy(adapter.module).bfloat16()))


def law(kind: type[_Law]) -> MeasuredLaw:
    return kind(code="OP499", name="test", statement="-", trait="-", remedy="-", expectation={})


def test_what_does_not_hold_with_low_rank_is_compared_with_the_weights_of_the_model(calls: CachedCalls) -> None:
    results = list(run_at_lengths(law(_Law), calls, FLOAT32_TOLERANCE))
    assert [(r.verdict, r.has_low_rank) for r in results] == [
        ("held", False), ("held", True), ("refuted", False), ("held", False),
    ]  # fmt: skip
    assert list(dict.fromkeys(SEEN)) == [
        ("first", False), ("second", True), ("differs", True), ("differs", False), ("raises", True), ("raises", False),
    ]  # fmt: skip


def test_what_is_for_information_only_is_not_repeated_with_the_weights_of_the_model(calls: CachedCalls) -> None:
    replaced = LowRankCalls(law(_Law), calls, FLOAT32_TOLERANCE, began=True)
    for_information = replace(compare("differs", differs=True), informational=True)
    replaced._comparisons[7] = {"differs": for_information}
    result = replaced.held(for_information, 7)
    assert result is not None
    assert result.record.reason.startswith("differs: the outputs differ by")
    assert set(SEEN) == {("differs", True)}


@pytest.mark.parametrize(("first", "second", "shares"), [("cache", "cache", True), ("cache", "mask", False),
                                                         ("mask", "mask", False)])  # fmt: skip
def test_laws_of_caches_share_their_first_comparison(first: str, second: str, shares: bool, calls: CachedCalls) -> None:
    for place, name in enumerate((first, second)):
        kind = replace(law(_Law), required_inputs=frozenset({name}))
        result = next(iter(run_at_lengths(kind, calls, FLOAT32_TOLERANCE)))
        assert result.has_low_rank is (place == 1 and shares)
        calls.free_models()


@pytest.mark.parametrize("kind", [_LawOfWeights, _LawWithoutControl])
def test_low_rank_shows_nothing_of_weights_or_without_a_control(kind: type[_Law], calls: CachedCalls) -> None:
    results = list(run_at_lengths(law(kind), calls, FLOAT32_TOLERANCE))
    assert not any(r.has_low_rank for r in results)
    assert not any(low for _, low in SEEN)
    assert ("with_low_rank_weights" in vars(calls)) is law(kind).of_any_weights  # else nothing is copied


def test_a_small_model_is_compared_with_its_own_weights() -> None:
    calls = CachedCalls(tiny_adapter("qwen2"))
    assert calls.with_low_rank_weights is None
    assert LowRankCalls(law(_Law), calls, FLOAT32_TOLERANCE, began=True).held(compare("one"), 7) is None


def test_copies_with_low_rank_have_the_same_matrices_in_each_dtype(calls: CachedCalls) -> None:
    replaced = calls.with_low_rank_weights
    assert replaced is not None
    assert replaced is calls.at_length(5).with_low_rank_weights
    narrow, wide = replaced.adapter.module, replaced.float64.adapter.module
    assert isinstance(narrow, nn.Module)
    pairs = [(p, q) for p, q in zip(narrow.parameters(), wide.parameters(), strict=True) if isinstance(p, LowRank)]
    assert pairs
    assert all(isinstance(q, LowRank) and q.dtype is q.left.dtype is torch.float64 for _, q in pairs)
    assert all(torch.equal(p.left.double(), q.left) for p, q in pairs if isinstance(q, LowRank))


class RoundedPositions(HFAdapter):
    """Positions in the dtype of the weights."""

    def call(self, tokens: torch.Tensor, *, positions: torch.Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is not None:
            positions = positions.to(self.module.dtype).long()
        return super().call(tokens, positions=positions, **kwargs)


@pytest.mark.parametrize("name", ["distinct_positions", "position_precision"])
@pytest.mark.parametrize("rounded", [False, True])
def test_rounded_positions_of_a_large_model_are_found(name: str, rounded: bool, calls: CachedCalls) -> None:
    calls.adapter.module.rotary_emb = tiny_adapter("qwen2").module.rotary_emb  # whose frequencies were rounded
    if rounded:
        calls.adapter.__class__ = RoundedPositions
    found = measure_law(calls.adapter, find_law(name), calls, kind="causal_lm")  # type: ignore[arg-type]
    assert found.verdict == ("refuted" if rounded else "held")
    assert (LOW_RANK in found.scope.assumptions) is not rounded


def test_what_depends_on_weights_is_compared_with_those_of_the_model(calls: CachedCalls) -> None:
    replaced = LowRankCalls(law(_Law), calls, FLOAT32_TOLERANCE, began=True)
    assert replaced.held(compare("second"), 7) is not None
    assert replaced.held(replace(compare("second"), of_weights=True), 7) is None
    adapter = tiny_adapter("gpt2")
    assert may_have_table(CachedCalls(adapter), 20)
    assert not may_have_table(calls, 20)
