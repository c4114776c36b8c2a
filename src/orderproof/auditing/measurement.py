"""Measure one law on one model: run its comparisons, separate rounding from a difference, and check the control.

    float32 within the tolerance                              the outputs agree
    otherwise the same in float64:  the difference is gone    rounding: the outputs agree
                                    the difference remains    the law is refuted
                                    neither                   undecided
    all comparisons agree, and the control moves the output by far more than the tolerance: held
    the control moves it by less: every comparison is repeated in float64, which has a finer tolerance

For outputs that must differ it is the other way round:

    float32 beyond the tolerance                              the outputs differ, as they must
    otherwise the same in float64:  the difference is gone    nothing changed: refuted, if the control moves the output
                                    the difference remains    small but real: the outputs differ, as they must
                                    neither                   undecided

The tolerance follows the noise of the model: the difference of two equal calls. The numbers are in
`orderproof.tolerances`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.auditing.findings import finding_without_result, is_met
from orderproof.errors import UnsupportedCallError, failure_reason
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw, NotedOutputs
from orderproof.prover.execution import relative_difference
from orderproof.records.audit import (
    ComparisonRecord,
    Deviation,
    Expectation,
    Finding,
    Measurement,
    Scope,
    Verdict,
    Witness,
)
from orderproof.tolerances import (
    CONTROL_FACTOR,
    FLOAT32_ONLY_DIFFERENCE,
    FLOAT32_TOLERANCE,
    FLOAT64_DIFFERENCE,
    FLOAT64_EQUAL,
    FLOAT64_ROUNDING,
    MAX_NOISE,
    NOISE_FACTOR,
    ZERO_TOLERANCE,
)


@dataclass(frozen=True)
class ComparisonResult:
    """The result of one comparison."""

    comparison: Comparison
    record: ComparisonRecord
    verdict: Verdict
    outputs: tuple[Tensor, Tensor] | None = None


def measure_law(
    adapter: ModelAdapter, law: MeasuredLaw, calls: CachedCalls, *, kind: str, expect: Expectation | None = None
) -> Finding:
    """The finding of one law for a model of this kind. Never raises for what the model does."""
    began = time.perf_counter()
    expected = expect or law.expected(kind)
    try:
        reason = law.inapplicable_reason(adapter)
        if reason is not None:
            finding = _without_result(law, expected, adapter, "not_applicable", reason)
        else:
            finding = _measure(adapter, law, calls, expected)
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        finding = _without_result(law, expected, adapter, "undecided", failure_reason(error))
    return finding.model_copy(update={"seconds": time.perf_counter() - began})


def _without_result(
    law: MeasuredLaw, expected: Expectation, adapter: ModelAdapter, verdict: Verdict, reason: str
) -> Finding:
    scope = Scope(length=adapter.default_length, weights="these")
    return finding_without_result(law, verdict, reason, expected=expected, scope=scope, output=adapter.output_name)


def _measure(adapter: ModelAdapter, law: MeasuredLaw, calls: CachedCalls, expected: Expectation) -> Finding:
    tolerance = _tolerance(law, calls)
    results = [_run_comparison(comparison, calls, tolerance, law) for comparison in law.comparisons(calls)]
    completed = [r for r in results if r.record.float32 is not None and not r.comparison.informational]
    deciding = _deciding_result(completed)
    if deciding is None:
        return _without_comparison(law, expected, adapter, results, tolerance)
    verdict, reason = deciding.verdict, deciding.record.reason
    seen_to_differ = verdict == "refuted" and not deciding.comparison.expects_difference
    moved, failure = (None, "") if seen_to_differ else _control_difference(law, calls)
    weak = moved is not None and FLOAT64_ROUNDING * CONTROL_FACTOR <= moved < CONTROL_FACTOR * tolerance
    if verdict == "held" and weak:
        tolerance = _float64_tolerance(completed, calls, law, tolerance)
    if verdict != "undecided" and not seen_to_differ and (moved is None or moved < CONTROL_FACTOR * tolerance):
        control = f"could not be run ({failure})" if moved is None else f"changed the output by only {moved:.1g}"
        what = "no difference was seen" if verdict == "held" else reason
        verdict, reason = "undecided", f"{what}, but the positive control {control}, so it is inconclusive"
    records = tuple(r.record.model_copy(update={"verdict": r.verdict}) for r in results)
    if verdict == "held":
        reason = _held_reason(len(completed), results)
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, expectation_met=is_met(verdict, expected),
        scope=Scope(length=calls.default_length, weights="these"), output=adapter.output_name,
        deviation=Deviation(float32=deciding.record.float32, float64=deciding.record.float64), reason=reason,
        witness=_witness(deciding, calls) if verdict == "refuted" else None,
        measurement=Measurement(tolerance=tolerance, control_difference=moved, comparisons=records),
        remedy=(deciding.comparison.remedy or law.remedy) if verdict == "refuted" else "",
        remedy_diff=law.diff if verdict == "refuted" and not deciding.comparison.remedy else "",
    )  # fmt: skip


def _tolerance(law: MeasuredLaw, calls: CachedCalls) -> float:
    """The largest difference that is attributed to rounding, given the difference of two equal calls."""
    if law.zero_tolerance:
        return ZERO_TOLERANCE
    again = calls.uncached_call(calls.default_tokens, keep=False).output
    noise = min(relative_difference(calls.default_output, again), MAX_NOISE)
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


def _run_comparison(comparison: Comparison, calls: CachedCalls, tolerance: float, law: MeasuredLaw) -> ComparisonResult:
    name = comparison.description
    try:
        outputs = comparison.run(calls)
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        unsupported = law.inapplicable_if_unsupported and isinstance(error, UnsupportedCallError)
        record = ComparisonRecord(description=name, reason=failure_reason(error))
        return ComparisonResult(comparison, record, "not_applicable" if unsupported else "undecided")
    expected, actual = pair = (outputs[0], outputs[1])
    if expected.shape != actual.shape:
        if comparison.expects_difference:
            return ComparisonResult(comparison, ComparisonRecord(description=name, float32=1.0), "held")
        reason = f"{name}: expected an output of shape {list(expected.shape)}, got {list(actual.shape)}"
        return ComparisonResult(comparison, ComparisonRecord(description=name, reason=reason), "undecided")
    if not bool(torch.isfinite(expected).all()) or not bool(torch.isfinite(actual).all()):
        reason = f"{name}: {_not_finite(*pair)}"
        return ComparisonResult(comparison, ComparisonRecord(description=name, reason=reason), "undecided")
    float32 = relative_difference(*pair)
    if comparison.informational:
        note = f"{name}: the outputs differ by {float32:.1g}" if float32 > ZERO_TOLERANCE else ""
        record = ComparisonRecord(description=name, float32=float32, reason=note)
        return ComparisonResult(comparison, record, "held", pair)
    float64: float | None = None
    verdict: Verdict
    doubt = ""
    if (float32 > tolerance) == comparison.expects_difference:
        verdict = "held"
    elif not law.confirm_in_float64:
        verdict = "refuted"
    else:
        float64, failure = _float64_difference(comparison, calls)
        judge = _still_equal if comparison.expects_difference else _still_different
        verdict, doubt = judge(float32, float64, tolerance)
        doubt += f" ({failure})" if doubt and failure else ""
    note = f"{name}: {outputs.note}" if isinstance(outputs, NotedOutputs) and outputs.note else name
    reason = "" if verdict == "held" else f"{name}: {doubt}" if doubt else note
    record = ComparisonRecord(description=name, float32=float32, float64=float64, reason=reason)
    return ComparisonResult(comparison, record, verdict, pair)


def _float64_tolerance(
    results: Sequence[ComparisonResult], calls: CachedCalls, law: MeasuredLaw, tolerance: float
) -> float:
    """The tolerance in float64 if all comparisons agree in it: float64 rounds less, so a weak control shows in it."""
    if not law.confirm_in_float64 or any(r.comparison.expects_difference for r in results):
        return tolerance
    differences = [_float64_difference(r.comparison, calls)[0] for r in results]
    agree = all(difference is not None and difference <= FLOAT64_ROUNDING for difference in differences)
    return FLOAT64_ROUNDING if agree else tolerance


def _still_different(float32: float, float64: float | None, tolerance: float) -> tuple[Verdict, str]:
    """The verdict on outputs that should be equal but differ in float32, from their float64 difference; the doubt."""
    if float64 is None:
        doubt = f"a difference of {float32:.1g}, and it cannot be run in float64"
        return ("refuted", "") if float32 >= FLOAT32_ONLY_DIFFERENCE else ("undecided", doubt)
    if float64 <= min(FLOAT64_ROUNDING, tolerance):
        return "held", ""
    if float64 >= min(FLOAT64_DIFFERENCE, 10 * tolerance):
        return "refuted", ""
    return "undecided", f"{float32:.1g} in float32 and {float64:.1g} in float64"


def _still_equal(float32: float, float64: float | None, tolerance: float) -> tuple[Verdict, str]:
    """The verdict on outputs that must differ and hardly do in float32, from their float64 difference; and the doubt.

    A difference in float32 below the tolerance is either rounding, which is smaller in float64, or a small effect,
    which is the same in float64.
    """
    if float64 is None:
        doubt = f"a difference of {float32:.1g} only, and it cannot be run in float64"
        return ("refuted", "") if float32 == 0.0 else ("undecided", doubt)
    if float64 <= FLOAT64_EQUAL:
        return "refuted", ""
    doubt = f"no difference in float32 and {float64:.1g} in float64"
    if float64 >= max(ZERO_TOLERANCE, float32 / 2):
        return ("held", "") if float32 > 0.0 else ("undecided", doubt)
    return "undecided", f"{float32:.1g} in float32 and {float64:.1g} in float64"


def _float64_difference(comparison: Comparison, calls: CachedCalls) -> tuple[float | None, str]:
    """The difference in float64; None if it cannot be run in float64, and the error if it has one."""
    try:
        pair = comparison.run(calls.float64)[:2]
    except Exception as error:  # noqa: BLE001 - many models name float32 inside
        return None, failure_reason(error)
    return (relative_difference(*pair) if all(bool(torch.isfinite(x).all()) for x in pair) else None), ""


def _not_finite(expected: Tensor, actual: Tensor) -> str:
    for name, x in (("the call it is compared with", expected), ("the call", actual)):
        bad = torch.nonzero(~torch.isfinite(x))
        if len(bad):
            return f"{name} gives NaN or infinity, first at {tuple(bad[0].tolist())}"
    return ""


def _deciding_result(results: Sequence[ComparisonResult]) -> ComparisonResult | None:
    """The result that decides: a refutation, else a doubt, else the largest difference of outputs that should be equal.

    A refutation by a difference precedes a refutation by a missing difference, which the control may still excuse.
    """
    order = ("refuted", "undecided", "held")

    def rank(result: ComparisonResult) -> tuple[int, bool, float]:
        size = result.record.float32 or 0.0
        must_differ = result.comparison.expects_difference
        return order.index(result.verdict), must_differ, size if must_differ else -size

    return min(results, key=rank, default=None)


def _control_difference(law: MeasuredLaw, calls: CachedCalls) -> tuple[float | None, str]:
    """How far the control moves the output; None with the error if it cannot be run."""
    try:
        return relative_difference(*law.control(calls)[:2]), ""
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        return None, failure_reason(error)


def _witness(result: ComparisonResult, calls: CachedCalls) -> Witness:
    """The element at which the outputs of a comparison differ most."""
    assert result.outputs is not None
    expected, actual = result.outputs
    place = int((expected.double() - actual.double()).abs().argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), expected.shape))
    return Witness(
        tokens_before=(), tokens_after=(), change=result.record.description, output_index=index,
        expected_value=float(expected[index]), actual_value=float(actual[index]),
        relative_difference=(result.record.float32 or 0.0) if result.record.float64 is None else result.record.float64,
        seed=calls.seed,
    )  # fmt: skip
