"""The audit of the first step of a run, on its own model: a budget, a report in the log and in a file, warn or fail."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import nn

from orderproof.errors import FailedStepError, UnsupportedCallError, failure_reason
from orderproof.laws.training import TrainingBatch, TrainingStep
from orderproof.laws.training.training_step import Loss
from orderproof.records.audit import Report
from orderproof.report.summary import summary_sentence
from orderproof.training.audit import StepAudit
from orderproof.training.kept_run import check_is_whole, kept_run

STEPS = 3.0  # the cost of an audit, in steps of the run
LEAST_SECONDS = 2.0  # that are allowed where a step takes less
LARGEST_COPIED = 10**8  # [parameters] of a model that is copied to float64 where float32 does not decide
log = logging.getLogger("orderproof.training")


@dataclass
class FirstStepAudit:
    """Settings of the audit of the first step of a run.

    `action` is "warn", which logs, or "fail", which raises `FailedStepError` after a violation. `report` is a file for
    the report as JSON. `laws` are names or codes.
    """

    action: Literal["warn", "fail"] = "warn"
    report: str | Path | None = None
    laws: Sequence[str] | None = None

    def run(
        self,
        model: nn.Module,
        batch: Any,
        loss: Loss,
        *holders: object,
        name: str,
        wrapped: object,
        share: float,
        spent: float = 0.0,
        weighs_labels: bool = False,
        logits_of: Callable[[Any], nn.Module] | None = None,
    ) -> Report | None:
        """Audit a step on the model of the run; None if it cannot be. Raises `FailedStepError` if asked to.

        `holders` have counters that a call may change, `wrapped` is the model as the run calls it, `share` the part of
        a step that one call of the loss is, `spent` the time that the audit took already [s]. The loss may weigh labels
        by preferences or rewards. `logits_of` finds the part of the model whose outputs are the logits.
        """
        try:
            check_is_whole(model, wrapped)
            with kept_run(model, *holders):
                part = logits_of(batch) if logits_of else model
                copied = logits_of is None and sum(x.numel() for x in model.parameters()) <= LARGEST_COPIED
                limited = _LimitedLoss(loss)
                step = TrainingStep(
                    part, TrainingBatch.of(batch), limited, tries=2, may_be_copied=copied, may_be_proved=False,
                    is_of_run=True, weighs_labels=weighs_labels,
                )  # fmt: skip
                found, cost = self._report(step, limited, name, share, spent)
        except Exception as error:  # noqa: BLE001 - the run must go on
            self.refuse(failure_reason(error))
            return None
        (log.warning if found.violations else log.info)("orderproof: %s %s", summary_sentence(found), cost)
        for finding in found.violations:
            log.warning("orderproof: %s %s: %s. %s", finding.code, finding.law, finding.reason, finding.remedy)
        if self.report is not None:
            Path(self.report).write_text(found.to_json(), encoding="utf-8")
        if found.violations and self.action == "fail":
            raise FailedStepError(f"the first step violates a law of training: {summary_sentence(found)}")
        return found

    def refuse(self, reason: str) -> None:
        """Say in the log that there is no audit."""
        log.warning("orderproof: the first step is not audited: %s", reason)

    def _report(
        self, step: TrainingStep, limited: _LimitedLoss, name: str, share: float, spent: float
    ) -> tuple[Report, str]:
        """The report, with a note of its cost."""
        began = time.perf_counter()
        step.gradients(step.batch)
        step_time = (time.perf_counter() - began) / share
        limited.end = began - spent + max(STEPS * step_time, LEAST_SECONDS)
        *_, report = StepAudit(self.laws, None, name).reports_of(step)
        took = time.perf_counter() - began + spent
        cost = f"The audit took {took:.2g} s, as long as {took / step_time:.2g} steps of {step_time:.2g} s."
        return report.model_copy(update={"notes": (*report.notes, cost)}), cost


@dataclass
class _LimitedLoss:
    """A loss that is not called any more when there is no time left for a call."""

    loss: Loss
    end: float | None = None
    longest: float = 0.0

    def __call__(self, model: Any, batch: Any) -> Any:
        began = time.perf_counter()
        # a forward and a backward pass take as long as three forward passes
        if self.end is not None and began + 3 * self.longest > self.end:
            raise UnsupportedCallError(f"the time of {STEPS:g} steps is used up")
        result = self.loss(model, batch)
        self.longest = max(self.longest, time.perf_counter() - began)
        return result
