"""Run one comparison of a measured law at one length, and separate rounding from a difference.

    float32 within the tolerance                              the outputs agree
    otherwise the same in float64:  the difference is gone    rounding: the outputs agree
                                    the difference remains    the law is refuted
                                    neither                   undecided

For outputs that must differ it is the other way round:

    float32 beyond the tolerance                              the outputs differ, as they must
    otherwise the same in float64:  the difference is gone    nothing changed: refuted, if the control moves the output
                                    the difference remains    small but real: the outputs differ, as they must
                                    neither                   undecided

Weights in a narrower dtype than float32 round so much that their outputs hardly decide anything. Outputs that should
be equal and are not, and outputs that must differ, are compared in float32, with the same weights: then as above. Where
float32 shows no difference and the narrow dtype a large one, the law is refuted in that dtype if one of the two calls
is much further from its output in float32 than the other.

A difference is repeated on a copy of the model as it was before its first call. If it is gone there, it is state that
an earlier call left, which the law stateless is about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from orderproof.auditing.record.failed_call import failed_call
from orderproof.errors import UnsupportedCallError, failure_reason
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw, NotedOutputs
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import ComparisonRecord, Verdict
from orderproof.tolerances import (
    FLOAT32_ONLY_DIFFERENCE,
    FLOAT64_DIFFERENCE,
    FLOAT64_EQUAL,
    FLOAT64_ROUNDING,
    ZERO_TOLERANCE,
)

DTYPE_FACTOR = 16  # times the rounding error of the other call: more than that is something else than rounding
DTYPE_UNITS = 32  # [units of rounding of the output's dtype] a difference below may be rounding: 0.25 in bfloat16
SAME_CALL = "both outputs are of one call, so the comparison shows nothing"


@dataclass(frozen=True)
class ComparisonResult:
    """The result of one comparison at one length [tokens]."""

    comparison: Comparison
    length: int
    record: ComparisonRecord
    verdict: Verdict
    outputs: tuple[Tensor, Tensor] | None = None
    has_low_rank: bool = False  # made with matrices of low rank in place of the model's own


def run_comparison(
    comparison: Comparison, calls: CachedCalls, length: int, tolerance: float, law: MeasuredLaw, *,
    refuted_before: bool = False,
) -> ComparisonResult:  # fmt: skip
    """The result of a comparison. Never raises for what the model does.

    `refuted_before`: it was refuted at another length, in float64 and on the model as it was before its first call; a
    difference far beyond rounding is not confirmed again.
    """
    began_in_first_state = calls.watches_state and calls.is_in_first_state()
    result = _run_once(comparison, calls, length, tolerance, law, refuted_before=refuted_before)
    if refuted_before and result.verdict == "refuted":
        return result
    size = result.record.float32 or 0.0
    doubted = size > tolerance and not comparison.expects_difference and not comparison.informational
    if law.refutation_changes_model or not (doubted or result.verdict == "refuted"):
        return result
    if began_in_first_state and calls.is_in_first_state():
        return result  # on a copy it would be the same
    calls.watches_state = True
    fresh = calls.as_before_the_first_call()
    if fresh is None:
        return result
    again = _run_once(comparison, fresh, length, tolerance, law)
    if again.verdict != "held" or (doubted and (again.record.float32 or 0.0) > tolerance):
        return result
    note = f"{comparison.description}: differs by {size:.1g} only after other calls, by state that they leave (OP406)"
    return replace(again, record=again.record.model_copy(update={"reason": note}))


def float64_difference(comparison: Comparison, calls: CachedCalls, length: int) -> tuple[float | None, str]:
    """The difference in float64; None if it cannot be run in float64, and the error if it has one."""
    try:
        wide = (calls.as_before_the_first_call() or calls).float64  # without the state that earlier calls left
        pair = comparison.run(wide.at_length(length))[:2]
    except Exception as error:  # noqa: BLE001 - many models name float32 inside
        return None, failure_reason(error)
    return (relative_difference(*pair) if all(bool(torch.isfinite(x).all()) for x in pair) else None), ""


def control_difference(law: MeasuredLaw, calls: CachedCalls) -> tuple[float | None, str]:
    """How far the control moves the output; None with the error if it cannot be run."""
    try:
        if calls.is_narrow and law.confirm_in_float64:  # whose rounding must not be taken for an effect
            moved = relative_difference(*law.control(calls)[:2])
            if moved >= _least_difference(calls.weight_dtype):
                return moved, ""
            calls = (calls.as_before_the_first_call() or calls).float32
        return relative_difference(*law.control(calls)[:2]), ""
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        return None, failure_reason(error)


def _run_once(
    comparison: Comparison, calls: CachedCalls, length: int, tolerance: float, law: MeasuredLaw, *,
    refuted_before: bool = False,
) -> ComparisonResult:  # fmt: skip
    name = comparison.description
    try:
        outputs = comparison.run(calls.at_length(length))
        if not isinstance(outputs, NotedOutputs) and _is_one_call(*outputs):
            raise UnsupportedCallError(SAME_CALL)
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        unsupported = law.inapplicable_if_unsupported and isinstance(error, UnsupportedCallError)
        record = ComparisonRecord(description=name, reason=(failure_reason if law.may_raise else failed_call)(error))
        return ComparisonResult(comparison, length, record, "not_applicable" if unsupported else "undecided")
    expected, actual = pair = (outputs[0], outputs[1])
    least = max(_least_difference(calls.weight_dtype), _least_difference(actual.dtype))
    narrow = calls.is_narrow and law.confirm_in_float64 and not (comparison.informational and comparison.of_weights)
    if narrow and not _decides(comparison, pair, least):
        return _in_float32(comparison, calls, length, tolerance, law, pair, refuted_before=refuted_before)
    if expected.shape != actual.shape:
        if comparison.expects_difference:
            return ComparisonResult(comparison, length, ComparisonRecord(description=name, float32=1.0), "held")
        reason = f"{name}: expected an output of shape {list(expected.shape)}, got {list(actual.shape)}"
        return ComparisonResult(comparison, length, ComparisonRecord(description=name, reason=reason), "undecided")
    if not bool(torch.isfinite(expected).all()) or not bool(torch.isfinite(actual).all()):
        reason = f"{name}: {_not_finite(*pair)}"
        return ComparisonResult(comparison, length, ComparisonRecord(description=name, reason=reason), "undecided")
    float32 = relative_difference(*pair)
    if comparison.informational:
        differ = f"the outputs differ by {float32:.1g}"
        note = f"{comparison.note} ({differ})" if comparison.note and float32 > tolerance else f"{name}: {differ}"
        note = note if float32 > ZERO_TOLERANCE else ""
        record = ComparisonRecord(description=name, float32=float32, reason=note)
        return ComparisonResult(comparison, length, record, "held", pair)
    float64: float | None = None
    beyond = float32 >= least and not comparison.expects_difference
    verdict: Verdict
    doubt = ""
    if (float32 > tolerance) == comparison.expects_difference:
        verdict = "held"
    elif not law.confirm_in_float64 or (beyond and refuted_before):
        verdict = "refuted"
    else:
        float64, failure = float64_difference(comparison, calls, length)
        if comparison.expects_difference:
            verdict, doubt = _still_equal(float32, float64, tolerance)
        else:
            verdict, doubt = _still_different(float32, float64, tolerance, least)
        doubt += f" ({failure})" if doubt and failure else ""
    note = f"{name}: {outputs.note}" if isinstance(outputs, NotedOutputs) and outputs.note else name
    reason = "" if verdict == "held" else f"{name}: {doubt}" if doubt else note
    record = ComparisonRecord(description=name, float32=float32, float64=float64, reason=reason)
    return ComparisonResult(comparison, length, record, verdict, pair)


def _decides(comparison: Comparison, pair: tuple[Tensor, Tensor], least: float) -> bool:
    """True if outputs in a narrow dtype decide a comparison: they are equal up to the last bits, or clearly differ."""
    expected, actual = pair
    if expected.shape != actual.shape or not bool(expected.isfinite().all()) or not bool(actual.isfinite().all()):
        return True
    size = relative_difference(*pair)
    if comparison.informational and size >= least:
        return True
    return size >= least if comparison.expects_difference else size <= ZERO_TOLERANCE


def _in_float32(
    comparison: Comparison, calls: CachedCalls, length: int, tolerance: float, law: MeasuredLaw,
    narrow: tuple[Tensor, Tensor], *, refuted_before: bool,
) -> ComparisonResult:  # fmt: skip
    """The result in float32, unless only the narrow dtype has a difference that rounding does not explain."""
    name, dtype = comparison.description, str(calls.weight_dtype).removeprefix("torch.")
    size = relative_difference(*narrow)
    clear = size >= _least_difference(calls.weight_dtype) and not comparison.expects_difference
    clear = clear and not comparison.of_token_ids  # rounding may choose another token
    result: ComparisonResult | None = None
    try:
        wide = (calls.as_before_the_first_call() or calls).float32  # without the state that earlier calls left
        result = _run_once(comparison, wide, length, tolerance, law, refuted_before=refuted_before)
        failure = result.record.reason if result.outputs is None else ""
    except Exception as error:  # noqa: BLE001 - third-party code: a model may not be copied
        failure = failure_reason(error)
    if result is None or failure:
        reason = f"{name}: a difference of {size:.1g} in {dtype}, and it cannot be run in float32 ({failure})"
    elif clear and result.verdict == "held" and _errors_differ(narrow, result.outputs, calls.weight_dtype):
        reason = f"{name}: in {dtype} only"
    else:
        return result
    record = ComparisonRecord(description=name, float32=size, reason=reason)
    verdict: Verdict = "refuted" if clear else "held" if comparison.informational else "undecided"
    return ComparisonResult(comparison, length, record, verdict, narrow)


def _errors_differ(
    narrow: tuple[Tensor, Tensor], wide: tuple[Tensor, Tensor] | None, dtype: torch.dtype
) -> bool:  # fmt: skip
    """True if one of two outputs is much further from what it is in float32 than the other."""
    if wide is None or any(x.shape != y.shape for x, y in zip(narrow, wide, strict=True)):
        return False
    errors = sorted(relative_difference(x, y) for x, y in zip(narrow, wide, strict=True))
    return errors[1] > DTYPE_FACTOR * max(errors[0], torch.finfo(dtype).eps)


def _least_difference(dtype: torch.dtype) -> float:
    """The least difference in this dtype that refutes a law without a run in float64."""
    eps = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    return max(FLOAT32_ONLY_DIFFERENCE, DTYPE_UNITS * eps)


def _is_one_call(expected: Tensor, actual: Tensor) -> bool:
    """True if both are the same part of one output: equal by construction."""
    return expected.data_ptr() == actual.data_ptr() and expected.stride() == actual.stride() and expected.numel() > 0


def _still_different(float32: float, float64: float | None, tolerance: float, least: float) -> tuple[Verdict, str]:
    """The verdict on outputs that should be equal but differ in float32, from their float64 difference; the doubt."""
    if float64 is None:
        doubt = f"a difference of {float32:.1g}, and it cannot be run in float64"
        return ("refuted", "") if float32 >= least else ("undecided", doubt)
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


def _not_finite(expected: Tensor, actual: Tensor) -> str:
    for name, x in (("the call it is compared with", expected), ("the call", actual)):
        bad = torch.nonzero(~torch.isfinite(x))
        if len(bad):
            return f"{name} gives NaN or infinity, first at {tuple(bad[0].tolist())}"
    return ""
