"""Audit a training step: findings of the laws OP7xx for a model, a batch and a loss."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from orderproof._version import __version__
from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.findings import finding_of, undecide_inapplicable, with_law
from orderproof.errors import SubjectError, UnsupportedCallError, UsageError, failure_reason
from orderproof.laws import find_training_law, training_laws
from orderproof.laws.training import TrainingBatch, TrainingLaw, TrainingStep
from orderproof.laws.training.training_step import Loss
from orderproof.models.subject import count_parameters
from orderproof.records.audit import (
    Expectation,
    Finding,
    Report,
    Scope,
    SubjectRecord,
)
from orderproof.records.document import versions
from orderproof.time_limit import TimeLimitExceeded, time_limit
from orderproof.tolerances import FLOAT32_TOLERANCE
from orderproof.training.finding import limited_finding

KIND = "training step"
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
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """Decide the laws of a training step: which tokens and labels each term of the loss depends on, and its weight.

    `batch` is a mapping of tensors with tokens and labels [row, token], or the pair of both. `loss` is called as
    loss(model, batch) and returns one number; without it the model returns a loss for the batch, as models of
    transformers do for labels. A copy of the model is called; the given one and the batch stay as they are. `laws` are
    names or codes, `expect` the expected results by law, `timeout` the limit for each law [s]. Raises `UsageError`,
    `SubjectError`.
    """
    planned = StepAudit(laws, expect, name or type(model).__name__, seed, strict, timeout)
    *_, report = planned.reports(model, batch, loss, progress)
    return report


@dataclass(frozen=True)
class StepAudit:
    """The laws to decide and how; see `audit`."""

    laws: Sequence[str] | None
    expect: Mapping[str, Expectation] | None
    name: str
    seed: int = 0
    strict: bool = False
    timeout: float | None = None

    @cached_property
    def chosen(self) -> list[TrainingLaw]:
        """The laws. Raises `UsageError` for an unknown one."""
        named = [self.laws] if isinstance(self.laws, str) else self.laws
        return [find_training_law(law) for law in named] if named else list(training_laws())

    @cached_property
    def expected(self) -> Mapping[str, Expectation]:
        """The expected results, by the name of a law. Raises `UsageError`."""
        return checked_expectations(self.expect, find_training_law)

    def undecided(self) -> Report:
        """The report of an audit that reaches none of its laws."""
        scope, subject = Scope(length=0, weights="these"), SubjectRecord(name=self.name, kind=KIND, parameters=0)
        found = [
            finding_of(law, "undecided", "", expected=self._expected(law), scope=scope, output="loss")
            for law in self.chosen
        ]
        return self._report(subject, [with_law(f, stated=f.law in self.expected) for f in found], time.perf_counter())

    def reports(
        self, model: nn.Module, batch: Any, loss: Loss | None, progress: Progress | None = None
    ) -> Iterator[Report]:
        """The report so far, after each law. Raises `UsageError`, `SubjectError`."""
        began, findings = time.perf_counter(), list[Finding]()
        chosen, expected = self.chosen, self.expected
        try:
            with time_limit(self.timeout):
                step = _checked_step(model, batch, loss, self.seed)
        except TimeLimitExceeded:
            raise SubjectError(f"expected a loss that is computed within {self.timeout:g} s") from None
        rows, length = step.batch.tokens.shape
        subject = SubjectRecord(
            name=self.name, kind=KIND, parameters=count_parameters(model), detail=f"a batch of {rows} x {length} tokens"
        )
        for index, law in enumerate(chosen):
            if progress is not None:
                progress(f"measuring {law.name}", index, len(chosen))
            began_law = time.perf_counter()
            found = with_law(limited_finding(step, law, self._expected(law), self.timeout), stated=law.name in expected)
            findings.append(found.model_copy(update={"seconds": time.perf_counter() - began_law}))
            yield self._report(subject, findings, began)
        named = {law.name for law in chosen} if self.laws else set[str]()
        yield self._report(subject, undecide_inapplicable(findings, named), began)

    def _expected(self, law: TrainingLaw) -> Expectation:
        return self.expected.get(law.name) or law.expected(KIND)

    def _report(self, subject: SubjectRecord, findings: Sequence[Finding], began: float) -> Report:
        return Report(
            orderproof_version=__version__, subject=subject, findings=tuple(findings), versions=versions(),
            strict=self.strict, seconds=round(time.perf_counter() - began, 3),
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
