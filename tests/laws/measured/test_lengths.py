"""Laws at several lengths: which lengths, violations that show past a threshold only, and state between calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.adapter import ModelAdapter, ModelOutput, Threshold
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.decide.sandbox import MeasurementRun
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.laws import find_law, measured_laws
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.laws.measured.lengths import MAX_LENGTH, measured_lengths, skipped_thresholds
from orderproof.models import from_adapter, from_module
from orderproof.models.module_thresholds import module_thresholds
from orderproof.records.audit import Finding

WINDOW = Threshold("window", 12, 4096)
WIDTH = 16


def measured(adapter: ModelAdapter, law: str) -> Finding:
    return measure_law(adapter, find_law(law), CachedCalls(adapter), kind="causal_lm")  # type: ignore[arg-type]


def with_window(of: type[TransformerAdapter], *thresholds: Threshold) -> TransformerAdapter:
    adapter = tiny_decoder(of=of)
    adapter.thresholds = thresholds or (WINDOW,)
    return adapter


class SkipsPastWindow(TransformerAdapter):
    """On a cache of 12 tokens and more, positions skip one."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **kwargs: Any) -> ModelOutput:
        if positions is None and past is not None and past[0].length >= WINDOW.tokens:
            positions = (past[0].length + 1 + torch.arange(tokens.shape[1])).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, past=past, **kwargs)


class CountsLongestCall(TransformerAdapter):
    """Its output is scaled by the longest call so far, past 12 tokens: state in its module."""

    def call(self, tokens: Tensor, **kwargs: Any) -> ModelOutput:
        module: Any = self.module
        module.longest = max(getattr(module, "longest", 0), tokens.shape[1])
        answer = super().call(tokens, **kwargs)
        scale = 1 + max(module.longest - WINDOW.tokens, 0) / 10
        return ModelOutput(answer.output * scale, answer.cache)


def test_lengths_are_below_at_and_past_each_threshold() -> None:
    assert measured_lengths(with_window(TransformerAdapter)) == (7, 11, 12, 13, 25)
    assert measured_lengths(with_window(TransformerAdapter, Threshold("stated", 128))) == (7, 128, 129)
    assert measured_lengths(with_window(TransformerAdapter, Threshold("width", 2))) == (3, 5, 7)
    limited = with_window(TransformerAdapter)
    limited.max_positions = 12
    assert measured_lengths(limited) == (7, 11, 12)


def test_thresholds_that_would_take_too_long_are_named() -> None:
    adapter = with_window(TransformerAdapter, WINDOW, Threshold("stated", MAX_LENGTH + 1))
    assert [threshold.name for threshold in skipped_thresholds(adapter)] == ["stated"]
    (note,) = measured(adapter, "use_cache").scope.assumptions
    assert note == "not measured around 301 tokens (stated): it would take too long"


def test_violation_past_a_threshold_says_from_which_length_on() -> None:
    adapter = with_window(SkipsPastWindow)
    assert measured(tiny_decoder(of=SkipsPastWindow), "cached_decoding").verdict == "held"
    found = measured(adapter, "cached_decoding")
    assert found.verdict == "refuted"
    assert found.measurement is not None
    decoding = found.measurement.comparisons[0]
    assert (decoding.lengths, decoding.refuted_lengths) == ((7, 11, 12, 13, 25), (13, 25))
    assert decoding.description == "token-by-token decoding, at 13 tokens"
    assert found.witness is not None
    assert found.witness.onset == (
        "it holds at 12 tokens and fails from 13 tokens on; "
        "window is 12 here and 4096 by default, so by default it fails from 4097 tokens on"
    )


def test_state_of_an_earlier_call_is_a_violation_of_stateless_only() -> None:
    adapter = with_window(CountsLongestCall)
    calls = CachedCalls(adapter)
    calls.remember_first_state()
    calls.uncached_call(calls.sample_tokens(30))
    laws = {name: find_law(name) for name in ("save_load", "stateless")}
    found = {
        name: measure_law(adapter, law, calls, kind="causal_lm")  # type: ignore[arg-type]
        for name, law in laws.items()
    }
    assert found["save_load"].verdict == "held"
    assert found["stateless"].verdict == "refuted"


def test_state_found_by_another_law_is_named_as_state() -> None:
    class LongCallFirst(type(find_law("use_cache"))):  # type: ignore[misc]
        """The law use_cache, after a long call."""

        def comparisons(self, calls: CachedCalls) -> Any:
            expected = calls.default_output
            calls.uncached_call(calls.sample_tokens(30))
            yield from super().comparisons(calls)
            assert expected is not None

    law = find_law("use_cache")
    adapter = with_window(CountsLongestCall)
    calls = CachedCalls(adapter)
    calls.remember_first_state()
    found = measure_law(adapter, LongCallFirst(**vars(law)), calls, kind="causal_lm")
    assert found.verdict == "held"
    assert found.measurement is not None
    assert "only after other calls, by state that they leave (OP406)" in found.measurement.comparisons[0].reason


@pytest.mark.parametrize(
    "law", [law for law in measured_laws() if law.name != "sequence_parallel"], ids=lambda x: x.name
)
def test_chosen_length_is_used_or_refused_in_one_line(law: MeasuredLaw) -> None:
    adapter = tiny_decoder()
    adapter.config_max_positions = 24
    (found,) = MeasurementRun(from_adapter(adapter), [law], length=11).findings()
    assert found.scope.length == 11
    refused = [note for note in found.scope.assumptions if note.startswith("not measured at the chosen 11 tokens: ")]
    if found.verdict == "held":
        assert len(refused) == (1 if law.ignores_length else 0)


def test_chosen_length_reaches_the_laws_of_an_audit() -> None:
    report = audit(tiny_decoder(of=SkipsPastWindow), laws=["cached_decoding"], length=17)
    assert [(f.verdict, f.scope.length) for f in report.findings] == [("refuted", 17)]


def test_modules_state_thresholds() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(4, 4, 5)
            self.register_buffer("causal_mask", torch.ones(1, 1, 32, 32).tril())

    assert [(t.name, t.tokens) for t in module_thresholds(Masked())] == [
        ("Masked.causal_mask", 32),
        ("Conv1d.kernel_size", 5),
    ]


class EndsAt(nn.Module):
    """Attention whose mask has ten rows: later tokens see nothing of the others."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(10, 10))

    def forward(self, x: Tensor) -> Tensor:
        carried = getattr(self, "carried", None)
        self.carried = x.mean((0, 1)) if x.shape[1] > 10 else carried
        y: Tensor = self.layer(x) + x.mean(1, keepdim=True)
        return y if carried is None or x.shape[1] <= 10 else y + carried


def test_plain_module_is_measured_around_the_size_of_its_mask() -> None:
    report = audit(from_module(EndsAt(), torch.randn(2, 7, WIDTH)), laws=["stateless"])
    (found,) = report.findings
    assert found.verdict == "refuted"
    assert found.witness is not None
    assert found.witness.onset.endswith("fails from 11 tokens on; EndsAt.mask is 10")


def test_encoder_is_measured_at_its_thresholds() -> None:
    adapter = tiny_encoder()
    adapter.thresholds = (WINDOW,)
    found = measured(adapter, "batch_composition")
    assert found.verdict == "held"
    assert found.measurement is not None
    assert found.measurement.comparisons[0].lengths == (7, 11, 12, 13, 25)


class DrawsPastWindow(TransformerAdapter):
    """Adds random numbers past 12 tokens."""

    def call(self, tokens: Tensor, **kwargs: Any) -> ModelOutput:
        answer = super().call(tokens, **kwargs)
        noise = torch.randn(()) if tokens.shape[1] > WINDOW.tokens else torch.zeros(())
        return ModelOutput(answer.output + noise, answer.cache)


def test_lengths_at_which_a_model_draws_random_numbers_are_left_out() -> None:
    adapter = with_window(DrawsPastWindow)
    calls = CachedCalls(adapter)
    calls.remember_first_state()
    found = measure_law(adapter, find_law("save_load"), calls, kind="causal_lm")  # type: ignore[arg-type]
    assert found.verdict == "held"
    assert found.measurement is not None
    assert found.measurement.comparisons[0].lengths == (7, 11, 12)
