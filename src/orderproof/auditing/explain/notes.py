"""Notes of a report: inputs that no run of a law changes, and comparisons that decide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orderproof.auditing.explain.implied_expectation import KIND_OF_UNKNOWN_MODELS
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.failed_call import CALL_RAISED
from orderproof.laws import ProvedLaw
from orderproof.models.row_counts import inputs_with_rows
from orderproof.recording.assumptions import DEFAULTS_ASSUMPTION
from orderproof.records.audit import Finding


def note_rows_that_stay(context: AuditContext, law: ProvedLaw) -> None:
    """Note the inputs whose rows are not replaced with the rows of the tokens."""
    subject = context.subject
    if subject.starts_with_rows:
        return
    axes = zip(subject.token_axes, inputs_with_rows(subject), strict=True)
    if stay := " and ".join(f"input {k}" for k, (axis, has_rows) in enumerate(axes) if has_rows and axis is None):
        context.note(f"{law.code} {law.name}: both runs get the same {stay}, so rows that meet there are not found")


def note_unchecked_mask(context: AuditContext, law: ProvedLaw, findings: Sequence[Finding]) -> None:
    """Note that a law is proved for calls without a mask that the model takes and that could not be given."""
    defaults = (text for f in findings for text in f.scope.assumptions if text.startswith(DEFAULTS_ASSUMPTION))
    words = ("mask", "*") if context.subject.model_kind == KIND_OF_UNKNOWN_MODELS else ("mask",)
    if text := next((text for text in defaults if any(word in text for word in words)), ""):
        context.note(
            f"{law.code} {law.name} is proved {text}; whether it holds with a mask was not checked; --role NAME=mask "
            "(in Python roles=) states the argument of a mask"
        )


_OF_ROWS = ("batch_composition", "pooled_padding")  # every model can be called with fewer rows, and with pads


def notes_of_comparisons(finding: Finding) -> Iterator[str]:
    """Remarks of comparisons that decide nothing, where they have words of their own."""
    records = finding.measurement.comparisons if finding.measurement is not None and finding.verdict == "held" else ()
    for record in records:
        if record.float32 is not None and record.reason and not record.reason.startswith(record.description):
            yield f"{finding.code} {finding.law}: {record.reason}"
        elif finding.law in _OF_ROWS and record.float32 is None and record.reason.startswith(CALL_RAISED):
            yield f"{finding.code} {finding.law}, {record.description}: {record.reason}"
