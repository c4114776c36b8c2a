"""The calls in which a proved law is compared where no theorem covers them: other rows, masks and lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from orderproof.auditing.record.context import AuditContext
from orderproof.batch_layout import MANY_ROWS, ONE_SIDE, PAD_LAYOUT_TEXTS, PAD_LAYOUTS, PADS_WITHIN
from orderproof.laws import ProvedLaw
from orderproof.laws.measured.lengths import matrix_weight_count
from orderproof.models import Subject
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.records.audit import Finding, Theorem

ROWS = (1, 3, 4, 16)
WITH_MANY_ROWS = (*ONE_SIDE, "one row without pads")  # layouts that have rows of another kind in a larger batch
LENGTHS = (2, 3, 16, 33, 64, 65, 128, 257, 258, 320)  # [tokens] around powers of two, where programs tend to branch
TESTED_LENGTHS = (66, 9)  # [tokens] at the first of these in its range, a theorem is tested
MAX_WORK = 2e9  # tokens times weights in matrices, of one run
MAX_LENGTH = 10_000  # [tokens] of a run, however few weights there are


@dataclass(frozen=True)
class OtherCall:
    """A call of which nothing is proved.

    Attributes:
        value: What differs from the recorded call: the number of rows, the mask or the number of tokens.
        words: The same in words: "with 4 rows".
        proved: For what the law is proved instead, as a sentence.
        context: The context in which this call is recorded.
        call_mode: Its call mode.
        runs: The context in which it is run.
        length: Its length [tokens]; None for that of `runs`.
        is_covered: A theorem covers it, which the call tests.

    """

    value: int | str
    words: str
    proved: str
    context: AuditContext
    call_mode: str
    runs: AuditContext
    length: int | None = None
    is_covered: bool = False


def calls_with_other_rows(context: AuditContext, law: ProvedLaw, finding: Finding) -> Iterator[OtherCall]:
    """The calls with other numbers of rows that no theorem covers."""
    del law
    call_mode, recorded = finding.call_mode or DEFAULT_SETTING, context.batch_size
    proved = f"it is proved with {_rows(recorded)}"
    affordable = _affordable_rows(context)
    for count in rows_without_theorem(finding.theorem):
        there = context.with_rows(count) if count != recorded and count <= affordable else None
        runs = "" if there is None else there.runs_in_call_mode(call_mode)
        if there is not None and not isinstance(runs, str):
            yield OtherCall(count, f"with {_rows(count)}", proved, there, call_mode, runs)


def _affordable_rows(context: AuditContext) -> float:
    return max(context.batch_size, MAX_WORK / (context.length * weight_count(context.runnable.subject)))


def calls_with_other_masks(context: AuditContext, law: ProvedLaw, finding: Finding) -> Iterator[OtherCall]:
    """The calls with other attention masks, if no theorem covers every mask: some layouts with more rows, too."""
    if (
        finding.call_mode not in PAD_LAYOUTS
        or finding.call_mode in law.call_modes_of_one_side
        or (_decides(finding.theorem) and finding.theorem.covers)
    ):
        return
    proved = f"it is proved at {finding.scope.length} tokens with pads at other places"
    is_wider = context.batch_size < MANY_ROWS <= _affordable_rows(context)
    more_rows = context.with_rows(MANY_ROWS) if is_wider else None
    pooled = law.one_call_mode_suffices(context.dims_for(law, finding.output))
    for layout in PAD_LAYOUTS:
        if pooled and layout in PADS_WITHIN:  # which token is the first or the last one is said of neither
            continue
        if layout not in law.call_modes_of_other_masks:
            continue
        for there in (context, more_rows if layout in WITH_MANY_ROWS else None):
            runs = "" if there is None else there.runs_in_call_mode(layout)
            if there is not None and not isinstance(runs, str):
                yield OtherCall(layout, PAD_LAYOUT_TEXTS[layout], proved, there, layout, runs)


def calls_with_other_lengths(context: AuditContext, law: ProvedLaw, finding: Finding) -> Iterator[OtherCall]:
    """The calls with other numbers of tokens that no theorem covers."""
    del law
    call_mode = finding.call_mode or DEFAULT_SETTING
    runs = context.in_call_mode(call_mode)
    if isinstance(runs, str) or context.whole_rows_only:
        return
    proved = f"it is proved at {finding.scope.length} tokens"
    subject = context.runnable.subject
    own = [(length, False) for length in lengths_without_theorem(subject, finding)]
    tested = _tested_lengths(context, call_mode, finding.theorem)
    for length, covered in own + [(length, True) for length in tested]:
        there = context.at_length(length)
        yield OtherCall(length, f"with {length} tokens", proved, there, call_mode, runs, length, covered)


def rows_without_theorem(theorem: Theorem | None) -> tuple[int, ...]:
    """The numbers of rows of a short list that no theorem covers."""
    covered = _decides(theorem) and not theorem.conditions
    return tuple(count for count in ROWS if not (covered and count >= LEAST_SIZE))


def lengths_without_theorem(subject: Subject, finding: Finding) -> list[int]:
    """The lengths [tokens] at which to compare runs: those of a short list that no theorem covers."""
    theorem = finding.theorem
    lengths = {*LENGTHS} - {finding.scope.length}
    if _decides(theorem) and theorem.open_length and not theorem.conditions:
        least, greatest = theorem.least_length, theorem.greatest_length
        above = set() if greatest is None else {greatest + 1, 2 * greatest + 1}
        lengths = {n for n in lengths | above if n < least or (greatest is not None and n > greatest)}
    return sorted(n for n in lengths if LEAST_SIZE <= n <= _longest(subject))


def _longest(subject: Subject) -> float:
    """The greatest length [tokens] of a run: what the model takes, and what is affordable."""
    longest = min(MAX_LENGTH, MAX_WORK / weight_count(subject))
    return longest if subject.max_length is None else min(longest, subject.max_length)


def _tested_lengths(context: AuditContext, call_mode: str, theorem: Theorem | None) -> list[int]:
    """The lengths [tokens] at which runs test a theorem, in case that a rule of the prover is wrong.

    There is one for each of its recordings but that of the length of the audit, at which the proof is tested too.
    """
    if not _decides(theorem) or not theorem.open_length or theorem.conditions:
        return []
    greatest = min(theorem.greatest_length or MAX_LENGTH, _longest(context.runnable.subject))
    lengths = [n for n in TESTED_LENGTHS if theorem.least_length <= n <= greatest][:1]
    for piece in context.open_calls.recorded(call_mode):
        own = [n for n in piece.compared_lengths if theorem.least_length <= n <= greatest]
        if own and not piece.has(context.length) and not any(piece.has(n) for n in lengths):
            lengths.append(own[-1])
    return lengths


def weight_count(subject: Subject) -> int:
    """The number of weights that every token is multiplied by; at least 1."""
    return max(matrix_weight_count(subject.module), 1)


def _decides(theorem: Theorem | None) -> TypeGuard[Theorem]:
    """True if a theorem is proved, and of the model itself: runs of one with replaced parts are compared."""
    return theorem is not None and theorem.proved and not theorem.is_of_replaced_parts


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"
