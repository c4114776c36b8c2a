"""Measure one law on one model: run its comparisons at every length, and check the control.

    all comparisons agree, and the control moves the output by far more than the tolerance: held
    the control moves it by less: every comparison is repeated in float64, which has a finer tolerance

How one comparison is decided is in `comparison_runs`. The tolerance follows the noise of the model: the difference of
two equal calls. The numbers are in `orderproof.tolerances`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import torch

from orderproof.adapter import ModelAdapter
from orderproof.auditing.explain.entries import Frame
from orderproof.auditing.explain.findings import finding_of
from orderproof.auditing.explain.first_difference import Place, first_difference_place
from orderproof.auditing.explain.kept_value import kept_value_place
from orderproof.auditing.record.failed_call import failed_law
from orderproof.auditing.search.comparison_runs import ComparisonResult, control_difference, float64_difference
from orderproof.auditing.search.lengths import UNSEEN, Watch, merge_lengths, onset, run_at_lengths
from orderproof.auditing.search.low_rank_calls import LOW_RANK
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.laws.measured.lengths import skipped_thresholds
from orderproof.recording.execution import differing_parts
from orderproof.records.audit import (
    Deviation,
    Expectation,
    Finding,
    Measurement,
    Remedy,
    Scope,
    Verdict,
    Witness,
)
from orderproof.tolerances import (
    CONTROL_FACTOR,
    FLOAT32_TOLERANCE,
    FLOAT64_ROUNDING,
    MAX_NOISE,
    NOISE_FACTOR,
    ZERO_TOLERANCE,
)

OTHER_WEIGHTS = (
    "load trained weights, or move those that are zero at the start, so that the output depends on its inputs"
)
OTHER_INPUTS = "give inputs with which the model runs when its tokens are replaced"


def measure_law(
    adapter: ModelAdapter, law: MeasuredLaw, calls: CachedCalls, *, kind: str, expect: Expectation | None = None,
    watch: Watch = UNSEEN,
) -> Finding:  # fmt: skip
    """The finding of one law for a model of this kind. Never raises for what the model does.

    Warnings are ignored: where a caller turns them into errors, a deprecated argument inside a library would leave
    comparisons out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _measure_law(adapter, law, calls, kind, expect, watch)


def _measure_law(
    adapter: ModelAdapter, law: MeasuredLaw, calls: CachedCalls, kind: str, expect: Expectation | None,
    watch: Watch,
) -> Finding:  # fmt: skip
    began = time.perf_counter()
    expected = expect or law.expected_of(adapter, kind)
    try:
        reason = law.inapplicable_reason(adapter)
        if reason is not None:
            failure = law.probe_failure(adapter)
            verdict: Verdict = "undecided" if failure else "not_applicable"
            finding = _without_result(law, expected, adapter, verdict, failure or reason)
        else:
            watch.begin(law)
            finding = _measure(adapter, law, calls, expected, watch)
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        finding = _without_result(law, expected, adapter, "undecided", failed_law(error))
    return finding.model_copy(update={"seconds": time.perf_counter() - began})


def _without_result(
    law: MeasuredLaw, expected: Expectation, adapter: ModelAdapter, verdict: Verdict, reason: str
) -> Finding:
    scope = Scope(length=adapter.default_length, weights="these")
    return finding_of(law, verdict, reason, expected=expected, scope=scope, output=adapter.output_name)


def _measure(
    adapter: ModelAdapter, law: MeasuredLaw, calls: CachedCalls, expected: Expectation, watch: Watch
) -> Finding:
    tolerance = _tolerance(law, calls)
    every = list(run_at_lengths(law, calls, tolerance, watch))
    results = merge_lengths(every, calls.default_length)
    completed = [r for r in results if r.record.float32 is not None and not r.comparison.informational]
    deciding = _deciding_result(completed)
    if deciding is None:
        return _without_comparison(law, expected, adapter, results, tolerance)
    verdict, reason = deciding.verdict, deciding.record.reason
    seen_to_differ = verdict == "refuted" and not deciding.comparison.expects_difference
    moved, failure = (None, "") if seen_to_differ else control_difference(law, calls)
    weak = moved is not None and FLOAT64_ROUNDING * CONTROL_FACTOR <= moved < CONTROL_FACTOR * tolerance
    if verdict == "held" and weak:
        decided = [r for r in every if r.record.float32 is not None and not r.comparison.informational]
        tolerance = _float64_tolerance(decided, calls, law, tolerance)
    if verdict != "undecided" and not seen_to_differ and (moved is None or moved < CONTROL_FACTOR * tolerance):
        control = f"could not be run ({failure})" if moved is None else f"changed the output by only {moved:.1g}"
        what = "no difference was seen" if verdict == "held" else reason
        advice = OTHER_INPUTS if moved is None else OTHER_WEIGHTS
        verdict, reason = "undecided", f"{what}, but the positive control {control}, so it is inconclusive: {advice}"
    records = tuple(r.record.model_copy(update={"verdict": r.verdict}) for r in results)
    if verdict == "held":
        reason = _held_reason(len(completed), results)
    place = _first_difference(law, deciding, calls) if verdict == "refuted" else None
    assumptions = (*_left_out_lengths(adapter, law), *([LOW_RANK] if any(r.has_low_rank for r in every) else []))
    own = deciding.comparison.remedy
    line = place.own_frame if place else Frame()
    remedy = Remedy(text=own) if own else law.remedy_for(adapter, place.kind if place else "", line.text)
    return finding_of(
        law, verdict, reason, expected=expected,
        scope=Scope(length=calls.default_length, weights="these", assumptions=assumptions),
        output=adapter.output_name,
        deviation=Deviation(float32=deciding.record.float32, float64=deciding.record.float64),
        witness=_witness(deciding, calls, place) if verdict == "refuted" else None,
        fix_source=line.source, fix_line=line.text,
        measurement=Measurement(tolerance=tolerance, control_difference=moved, comparisons=records),
        remedy=remedy.text if verdict == "refuted" else "", remedy_diff=remedy.diff if verdict == "refuted" else "",
    )  # fmt: skip


def _left_out_lengths(adapter: ModelAdapter, law: MeasuredLaw) -> tuple[str, ...]:
    """The thresholds around which the law was not measured, in one line."""
    skipped = skipped_thresholds(adapter) if law.every_length else ()
    places = dict.fromkeys(f"{threshold.tokens:,} tokens ({threshold.name})" for threshold in skipped)
    return (f"not measured around {', '.join(places)}: it would take too long",) if places else ()


def _tolerance(law: MeasuredLaw, calls: CachedCalls) -> float:
    """The largest difference that is attributed to rounding, given the difference of two equal calls."""
    if law.zero_tolerance:
        return ZERO_TOLERANCE
    noise = min(calls.repeat_difference, MAX_NOISE)
    return max(FLOAT32_TOLERANCE if law.confirm_in_float64 else ZERO_TOLERANCE, NOISE_FACTOR * noise)


def _without_comparison(
    law: MeasuredLaw,
    expected: Expectation,
    adapter: ModelAdapter,
    results: Sequence[ComparisonResult],
    tolerance: float,
) -> Finding:
    """The finding if no comparison could be made: not applicable if every call was refused as unsupported."""
    refused = all(r.verdict == "not_applicable" for r in results)
    reasons = dict.fromkeys(r.record.reason for r in results)
    finding = _without_result(
        law, expected, adapter, "not_applicable" if refused else "undecided", "; ".join(reasons) or "nothing to compare"
    )
    measurement = Measurement(tolerance=tolerance, comparisons=tuple(r.record for r in results))
    return finding.model_copy(update={"measurement": measurement})


def _held_reason(completed: int, results: Sequence[ComparisonResult]) -> str:
    skipped = sum(r.record.float32 is None for r in results)
    reason = f"{completed} comparison{'s' * (completed > 1)}"
    reason += f", {skipped} more could not be made" if skipped else ""
    notes = [r.record.reason for r in results if r.comparison.informational and r.record.float32 and r.record.reason]
    return "; ".join([reason, *(f"for information only: {note}" for note in notes)])


def _float64_tolerance(
    results: Sequence[ComparisonResult], calls: CachedCalls, law: MeasuredLaw, tolerance: float
) -> float:
    """The tolerance in float64 if all comparisons agree in it: float64 rounds less, so a weak control shows in it."""
    if not law.confirm_in_float64 or any(r.comparison.expects_difference for r in results):
        return tolerance
    differences = [float64_difference(r.comparison, calls, r.length)[0] for r in results]
    agree = all(difference is not None and difference <= FLOAT64_ROUNDING for difference in differences)
    return FLOAT64_ROUNDING if agree else tolerance


def _deciding_result(results: Sequence[ComparisonResult]) -> ComparisonResult | None:
    """The result that decides: a refutation, else a doubt, else the largest difference of outputs that should be equal.

    A refutation by a difference precedes a refutation by a missing difference, which the control may still excuse.
    """
    order = ("refuted", "undecided", "held")

    def rank(result: ComparisonResult) -> tuple[int, bool, bool, float]:
        size = result.record.float32 or 0.0
        must_differ = result.comparison.expects_difference
        ids = result.comparison.of_token_ids
        return order.index(result.verdict), must_differ, ids, size if must_differ else -size

    return min(results, key=rank, default=None)


def _first_difference(law: MeasuredLaw, result: ComparisonResult, calls: CachedCalls) -> Place | None:
    """Where a value is kept that makes two outputs differ, or where these first differ; None if that is not known."""
    if law.refutation_changes_model and (kept := kept_value_place(result.comparison, calls, result.length)):
        return kept
    must_differ = result.comparison.expects_difference
    return None if must_differ else first_difference_place(result.comparison, calls, result.length)


def _witness(result: ComparisonResult, calls: CachedCalls, seen: Place | None) -> Witness:
    """The element at which the outputs of a comparison differ most."""
    assert result.outputs is not None
    expected, actual = differing_parts(*result.outputs)
    place = int((expected.double() - actual.double()).abs().argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), expected.shape))
    return Witness(
        tokens_before=(), tokens_after=(), change=result.record.description, output_index=index,
        expected_value=float(expected[index]), actual_value=float(actual[index]),
        relative_difference=(result.record.float32 or 0.0) if result.record.float64 is None else result.record.float64,
        first_violating_module=seen.module if seen else "", first_violating_source=seen.frame.source if seen else "",
        onset=onset(calls.adapter, result), seed=calls.seed,
    )  # fmt: skip
