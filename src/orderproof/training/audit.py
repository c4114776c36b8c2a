"""Audit a training step: findings of the laws OP7xx for a model, a batch and a loss."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from orderproof._version import __version__
from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.entries import Frame
from orderproof.auditing.explain.findings import finding_of, undecide_inapplicable, with_law
from orderproof.auditing.explain.first_difference import Place
from orderproof.errors import SubjectError, UnsupportedCallError, UsageError, failure_reason
from orderproof.laws import find_training_law, training_laws
from orderproof.laws.training import TermComparison, TrainingBatch, TrainingLaw, TrainingStep
from orderproof.laws.training.training_step import Loss
from orderproof.models.subject import count_parameters
from orderproof.records.audit import (
    ComparisonRecord,
    Deviation,
    Expectation,
    Finding,
    Measurement,
    Report,
    Scope,
    SubjectRecord,
    Verdict,
    Witness,
)
from orderproof.records.document import versions
from orderproof.tolerances import CONTROL_FACTOR, FLOAT32_TOLERANCE, ZERO_TOLERANCE
from orderproof.training.loss_line import loss_place

KIND = "training step"
ASSUMPTION = "measured in evaluation mode, without dropout and autocast"
Progress = Callable[[str, int, int], None]


def audit(
    model: nn.Module,
    batch: Any,
    loss: Loss | None = None,
    *,
    laws: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    name: str | None = None,
    seed: int = 0,
    strict: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Decide the laws of a training step: which tokens and labels each term of the loss depends on, and its weight.

    `batch` is a mapping of tensors with tokens and labels [row, token], or the pair of both. `loss` is called as
    loss(model, batch) and returns one number; without it the model returns a loss for the batch, as models of
    transformers do for labels. A copy of the model is called; the given one and the batch stay as they are. `laws` are
    names or codes, `expect` the expected results by law. Raises `UsageError`, `SubjectError`.
    """
    began = time.perf_counter()
    chosen = (
        [find_training_law(law) for law in ([laws] if isinstance(laws, str) else laws)] if laws else training_laws()
    )
    expected = checked_expectations(expect, find_training_law)
    show = progress or (lambda text, done, total: None)
    step = _checked_step(model, batch, loss, seed)
    findings = []
    for index, law in enumerate(chosen):
        show(f"measuring {law.name}", index, len(chosen))
        began_law, stated = time.perf_counter(), expected.get(law.name)
        finding = with_law(_finding(step, law, stated or law.expected(KIND)), stated=stated is not None)
        findings.append(finding.model_copy(update={"seconds": time.perf_counter() - began_law}))
    found = undecide_inapplicable(findings, {law.name for law in chosen} if laws else set())
    rows, length = step.batch.tokens.shape
    subject = SubjectRecord(
        name=name or type(model).__name__, kind=KIND, parameters=count_parameters(model),
        detail=f"a batch of {rows} x {length} tokens",
    )  # fmt: skip
    return Report(
        orderproof_version=__version__, subject=subject, findings=tuple(found), versions=versions(), strict=strict,
        seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def _checked_step(model: Any, batch: Any, loss: Any, seed: int) -> TrainingStep:
    """The step with a copy of the model, called once or twice. Raises `UsageError`, `SubjectError`."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"expected a torch.nn.Module as the model; got {type(model).__name__}")
    if loss is not None and not callable(loss):
        raise UsageError(f"expected loss as a function of model and batch; got {type(loss).__name__}")
    try:
        copied = copy.deepcopy(model).eval()
    except Exception as error:
        raise SubjectError(f"expected a model that can be copied; {failure_reason(error)}") from error
    step = TrainingStep(copied, TrainingBatch.of(batch), loss, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first, second = step.terms(step.batch).loss, step.terms(step.batch).loss
        except UnsupportedCallError as error:
            raise SubjectError(str(error)) from error
    if first != first or abs(first) == float("inf"):
        raise SubjectError(f"expected a finite loss; got {first}")
    if abs(first - second) > FLOAT32_TOLERANCE * abs(first):
        raise SubjectError(f"expected the same loss for the same batch; got {first:.6g} and then {second:.6g}")
    return step


def _finding(step: TrainingStep, law: TrainingLaw, expected: Expectation) -> Finding:
    """The finding of one law. Never raises for what the model or the loss does."""
    scope = Scope(length=step.batch.tokens.shape[1], weights="these", assumptions=(ASSUMPTION,))
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
    if not _held(single, tolerance):
        tolerance, double = ZERO_TOLERANCE, list(law.comparisons(step.in_float64()))
    deciding = double or single
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
        tokens_before=(), tokens_after=(), change=found.found or found.description, relative_difference=found.difference,
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
