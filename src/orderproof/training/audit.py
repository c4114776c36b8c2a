"""Audit a training step: findings of the laws OP7xx for a model, a batch and a loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from orderproof._version import __version__
from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.findings import finding_of, undecide_inapplicable, with_law
from orderproof.errors import SubjectError
from orderproof.laws import find_training_law, training_laws
from orderproof.laws.training import TrainingLaw, TrainingStep
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
from orderproof.training.finding import limited_finding
from orderproof.training.step_inputs import StepInputs

KIND = "training step"
Progress = Callable[[str, int, int], None]


def audit(
    model: nn.Module,
    batch: Any = None,
    loss: Loss | None = None,
    *,
    collator: Callable[[Any], Any] | None = None,
    samples: Sequence[Any] = (),
    rollout: str | Callable[[list[int], list[int]], Sequence[float]] | None = None,
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
    transformers do for labels. `collator` is called as collator(list of samples), and makes the batch if none is given.
    `rollout` is the engine that generates the labelled tokens: "generate" of transformers, an engine of `orderproof
    list engines`, or a function of the tokens of a prompt and those of its completion, which returns the
    log-probability of each of the latter. A copy of the model is called; the given one and the batch stay as they are.
    `laws` are names or codes, `expect` the expected results by law, `timeout` the limit for each law [s]. Raises
    `UsageError`, `SubjectError`.
    """
    planned = StepAudit(laws, expect, name or type(model).__name__, seed, strict, timeout)
    *_, report = planned.reports(StepInputs(model, batch, loss, collator, samples, rollout), progress)
    return report


def audit_collator(
    collator: Callable[[Any], Any], samples: Sequence[Any], *, name: str | None = None, strict: bool = False
) -> Report:
    """Decide the law of collators (OP710) for samples: dicts with `input_ids`, or what `collator` takes a list of.

    Raises `UsageError`.
    """
    planned = StepAudit(
        ("OP710",), None, name or str(getattr(collator, "__name__", type(collator).__name__)), strict=strict
    )
    *_, report = planned.reports(StepInputs(collator=collator, samples=samples))
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

    def reports(self, given: StepInputs, progress: Progress | None = None) -> Iterator[Report]:
        """The report so far, after each law. Raises `UsageError`, `SubjectError`."""
        self.undecided()  # an unknown law is refused before a call
        try:
            with time_limit(self.timeout):
                step = given.step(self.seed)
        except TimeLimitExceeded:
            raise SubjectError(f"expected a loss that is computed within {self.timeout:g} s") from None
        yield from self.reports_of(step, progress)

    def reports_of(self, step: TrainingStep, progress: Progress | None = None) -> Iterator[Report]:
        """The report so far, after each law of a step that can be called."""
        began, findings = time.perf_counter(), list[Finding]()
        chosen, expected = self.chosen, self.expected
        rows, length = step.batch.tokens.shape
        subject = SubjectRecord(
            name=self.name,
            kind=KIND,
            parameters=count_parameters(step.model),
            detail=f"a batch of {rows} x {length} tokens",
        )
        for index, law in enumerate(chosen):
            if progress is not None:
                progress(f"measuring {law.name}", index, len(chosen))
            began_law = time.perf_counter()
            found = limited_finding(step, law, self._expected(law), self.timeout)
            if found.verdict == "not_applicable" and law.may_lack and not self.laws and law.name not in expected:
                found = found.model_copy(update={"expected": "any"})
            found = with_law(found, stated=law.name in expected)
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
