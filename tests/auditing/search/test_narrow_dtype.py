"""Comparisons of a model in bfloat16: no rounding is taken for a fault, and no fault for rounding."""

from __future__ import annotations

from typing import Any, Self

import pytest
import torch

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.search.comparison_runs import control_difference, run_comparison
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Finding
from orderproof.tolerances import FLOAT32_TOLERANCE, ZERO_TOLERANCE

SMALL = 0.01  # hidden by the rounding of bfloat16


class Faulty(TransformerAdapter):
    """Adds to the output of calls on a cache: always, or in bfloat16 alone."""

    added = 0.0
    added_in_bfloat16 = 0.0

    def call(self, tokens: torch.Tensor, *, past: Any = None, **arguments: Any) -> ModelOutput:
        """Call the model, with the fault."""
        found = super().call(tokens, past=past, **arguments)
        if past is None:
            return found
        narrow = found.output.dtype == torch.bfloat16
        most = found.output.abs().max()
        return found._replace(output=found.output + most * (self.added + narrow * self.added_in_bfloat16))

    def with_faults(self, added: float, added_in_bfloat16: float) -> Self:
        """The same adapter with these faults."""
        self.added, self.added_in_bfloat16 = added, added_in_bfloat16
        return self


def decoder(added: float = 0.0, added_in_bfloat16: float = 0.0) -> ModelAdapter:
    """A decoder in bfloat16."""
    adapter = tiny_decoder()
    adapter.__class__ = Faulty
    assert isinstance(adapter, Faulty)
    return adapter.with_faults(added, added_in_bfloat16).cast_to(torch.bfloat16)


def measured(adapter: ModelAdapter, law_name: str) -> Finding:
    law = find_law(law_name)
    assert isinstance(law, MeasuredLaw)
    return measure_law(adapter, law, CachedCalls(adapter, floats=torch.bfloat16), kind="causal_lm")


@pytest.mark.parametrize("law", ["cached_decoding", "chunked_prefill", "left_padded_decoding", "attention_backend"])
def test_a_healthy_model_in_bfloat16_has_no_fault(law: str) -> None:
    found = measured(decoder(), law)
    assert found.verdict in ("held", "not_applicable"), found.reason


@pytest.mark.parametrize("law", ["cached_decoding", "chunked_prefill"])
def test_a_fault_below_the_rounding_of_bfloat16_is_found(law: str) -> None:
    found = measured(decoder(added=SMALL), law)
    assert found.verdict == "refuted", found.reason
    assert found.deviation.float64 is not None
    assert found.deviation.float64 == pytest.approx(SMALL, rel=0.3)


def test_a_fault_of_bfloat16_alone_is_found() -> None:
    found = measured(decoder(added_in_bfloat16=1.0), "cached_decoding")
    assert found.verdict == "refuted"
    assert found.reason.endswith("in bfloat16 only")


@pytest.mark.parametrize(("added", "differ"), [(0.0, False), (SMALL, True), (1.0, True)])
def test_rounding_is_no_information(added: float, differ: bool) -> None:
    """One call on a cache is compared with one without, for information."""

    def run(calls: CachedCalls) -> tuple[torch.Tensor, torch.Tensor]:
        output, _ = calls.incremental_forward(calls.default_tokens, [4, 3])
        return calls.default_output, output * (1 + SMALL * (output.dtype == torch.bfloat16))  # as rounding would

    comparison = Comparison("for information", run, informational=True)
    adapter, law = decoder(added), find_law("cached_decoding")
    calls = CachedCalls(adapter, floats=torch.bfloat16)
    assert isinstance(law, MeasuredLaw)
    assert relative_difference(*run(calls)) > ZERO_TOLERANCE
    result = run_comparison(comparison, calls, calls.default_length, FLOAT32_TOLERANCE, law)
    assert result.verdict == "held"
    assert (result.record.float32 or 0.0) > SMALL / 2 if differ else (result.record.float32 or 0.0) < FLOAT32_TOLERANCE


def test_a_control_that_clearly_moves_the_output_needs_no_copy_in_float32() -> None:
    law = find_law("cached_decoding")
    assert isinstance(law, MeasuredLaw)
    calls = CachedCalls(decoder(), floats=torch.bfloat16)
    moved, failure = control_difference(law, calls)
    assert not failure
    assert moved is not None
    assert moved > 0.25
    assert "float32" not in vars(calls)


def test_a_control_that_rounding_may_explain_is_repeated_in_float32() -> None:
    class Still(type(find_law("cached_decoding"))):  # type: ignore[misc]
        def control(self, calls: CachedCalls) -> tuple[torch.Tensor, torch.Tensor]:
            return calls.default_output, calls.incremental_forward(calls.default_tokens, [4, 3])[0]

    law = Still(**vars(find_law("cached_decoding")))
    moved, _ = control_difference(law, CachedCalls(decoder(), floats=torch.bfloat16))
    assert moved is not None
    assert moved < FLOAT32_TOLERANCE


def test_an_argument_that_changes_only_the_rounding_is_ignored() -> None:
    class Ignores(Faulty):
        def call(self, tokens: torch.Tensor, *, positions: Any = None, **arguments: Any) -> ModelOutput:
            found = super().call(tokens, positions=None, **arguments)
            gap = positions is not None and bool((positions.diff(dim=1) > 1).any())
            rounding = torch.finfo(found.output.dtype).eps * gap * (found.output.dtype == torch.bfloat16)
            return found._replace(output=found.output * (1 + 2 * rounding))

    adapter = decoder()
    adapter.__class__ = Ignores
    found = measured(adapter, "ignored_arguments")
    assert found.verdict == "refuted"
    assert found.reason.startswith("position ids must change the output")


@pytest.mark.parametrize(("added", "verdict"), [(1.0, "refuted"), (SMALL, "undecided")])
def test_a_difference_of_a_model_that_does_not_run_in_float32(added: float, verdict: str) -> None:
    class Stuck(Faulty):
        def cast_to(self, dtype: torch.dtype) -> Self:
            if dtype == torch.float32:
                raise RuntimeError("no float32")
            return super().cast_to(dtype)

    adapter = decoder(added=added)
    adapter.__class__ = Stuck
    found = measured(adapter, "cached_decoding")
    assert found.verdict == verdict
    assert "and it cannot be run in float32 (RuntimeError: no float32" in found.reason
