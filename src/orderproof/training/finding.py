"""The finding of one law of training steps: its comparisons in float32, and in float64 where that does not decide."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from orderproof.auditing.explain.entries import Frame
from orderproof.auditing.explain.findings import finding_of
from orderproof.auditing.explain.first_difference import Place
from orderproof.errors import UnsupportedCallError, failure_reason
from orderproof.laws.training import TermComparison, TrainingLaw, TrainingStep
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
from orderproof.time_limit import TimeLimitExceeded, time_limit
from orderproof.tolerances import CONTROL_FACTOR, FLOAT32_ONLY_DIFFERENCE, FLOAT32_TOLERANCE, ZERO_TOLERANCE
from orderproof.training.loss_line import loss_place
from orderproof.training.terms_graph import prove_terms


def limited_finding(step: TrainingStep, law: TrainingLaw, expected: Expectation, timeout: float | None) -> Finding:
    """The finding of one law within a time limit [s]."""
    try:
        with time_limit(timeout):
            found = _finding(step, law, expected)
            is_measured = found.verdict == "held" and step.may_be_proved
            return prove_terms(step, found, law.proved_as) if is_measured and law.proved_as else found
    except TimeLimitExceeded:
        scope = Scope(length=step.batch.tokens.shape[1], weights="these", assumptions=(law.assumption,))
        return finding_of(
            law, "undecided", f"not done after {timeout:g} s", expected=expected, scope=scope, output="loss"
        )  # fmt: skip


def _finding(step: TrainingStep, law: TrainingLaw, expected: Expectation) -> Finding:
    """The finding of one law. Never raises for what the model or the loss does."""
    scope = Scope(length=step.batch.tokens.shape[1], weights="these", assumptions=(law.assumption,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reason = law.inapplicable_reason(step)
            if reason is not None:
                return finding_of(law, "not_applicable", reason, expected=expected, scope=scope, output="loss")
            return _measured(step, law, expected, scope)
        except Exception as error:  # noqa: BLE001 - the code of the user: a call may fail in any way
            reason = failure_reason(error)
    return finding_of(law, "undecided", reason, expected=expected, scope=scope, output="loss")


def _measured(step: TrainingStep, law: TrainingLaw, expected: Expectation, scope: Scope) -> Finding:
    """The finding in float32; in float64 too where float32 does not decide it."""
    single, double, tolerance = list(law.comparisons(step)), list[TermComparison](), FLOAT32_TOLERANCE
    if not _held(single, tolerance) and not step.may_be_copied:
        tolerance = FLOAT32_ONLY_DIFFERENCE
    elif not _held(single, tolerance):
        tolerance, double = ZERO_TOLERANCE, list(law.comparisons(step.in_float64()))
    deciding = double or single
    if tolerance == FLOAT32_ONLY_DIFFERENCE and max(each.difference for each in deciding) <= tolerance:
        raise UnsupportedCallError("it differs in this dtype, and a model of this size is not copied to float64")
    control = min(each.control for each in deciding)
    worst = max(range(len(deciding)), key=lambda index: deciding[index].difference)
    verdict: Verdict = "held" if _held(deciding, tolerance) else "undecided"
    reason = f"{len(deciding)} comparison{'s' * (len(deciding) > 1)}"
    if verdict == "undecided":
        reason = f"no difference was seen, but the positive control changed the terms by only {control:.1g}"
    if (largest := deciding[worst].difference) > tolerance:
        verdict, reason = "refuted", deciding[worst].found or deciding[worst].description
    deviation = Deviation(
        float32=single[worst].difference if worst < len(single) else None, float64=largest if double else None
    )
    refuted = verdict == "refuted"
    place = loss_place(step, deciding[worst]) if refuted else None
    line = place.own_frame if place else Frame()
    remedy = deciding[worst].remedy or law.remedies.get(place.kind if place else "") or law.remedy
    return finding_of(
        law, verdict, reason, expected=expected, scope=scope, output="loss", deviation=deviation,
        measurement=Measurement(
            tolerance=tolerance, control_difference=control, comparisons=_records(single, double, tolerance)
        ),
        remedy=remedy if refuted else "", fix_source=line.source, fix_line=line.text,
        witness=_witness(deciding[worst], place) if refuted else None,
    )  # fmt: skip


def _witness(found: TermComparison, place: Place | None) -> Witness:
    return Witness(
        tokens_before=(), tokens_after=(), change=found.found or found.description,
        relative_difference=found.difference,
        first_violating_module=place.module if place else "",
        first_violating_source=place.frame.source if place else "",
    )  # fmt: skip


def _held(found: Sequence[TermComparison], tolerance: float) -> bool:
    """True if nothing differs, and each control moves what is compared by far more than the tolerance."""
    if not found:
        raise UnsupportedCallError("nothing to compare")
    return all(each.difference <= tolerance and each.control >= CONTROL_FACTOR * tolerance for each in found)


def _records(
    single: Sequence[TermComparison], double: Sequence[TermComparison], tolerance: float
) -> tuple[ComparisonRecord, ...]:
    wide = {each.description: each.difference for each in double}
    records = []
    for each in single:
        decided = wide.get(each.description, each.difference)
        records.append(
            ComparisonRecord(
                description=each.description,
                float32=each.difference,
                float64=wide.get(each.description),
                verdict="refuted" if decided > tolerance else "held",
                reason=each.found if decided > tolerance else "",
            )
        )
    return tuple(records)
