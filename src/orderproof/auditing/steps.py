"""An audit, step by step: an interrupted one still has what it found, and no law can cost the others."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from orderproof.auditing.apart import LIMIT, Measuring
from orderproof.auditing.examine import Examination
from orderproof.auditing.limits import OutOfTime, within
from orderproof.auditing.pictures import swap_and_maps
from orderproof.auditing.verdict import Options, is_met, prove_law
from orderproof.errors import OrderproofError
from orderproof.laws import Law, laws
from orderproof.laws.measured import MeasuredLaw, find, measured_laws
from orderproof.prover.capture import first_line
from orderproof.prover.rule import sentences
from orderproof.record import Expectation, Finding, HeatMap, Report, Scope, SubjectRecord, Swap
from orderproof.subjects import Subject

Progress = Callable[[str, int, int], None]


def audit_steps(
    exam: Examination,
    *,
    chosen: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    timeout: float | None = LIMIT,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """The report so far, after each step."""
    for name in expect or {}:
        find(name)
    wanted: list[Law | MeasuredLaw] = [find(name) for name in chosen] if chosen else [*laws(), *measured_laws()]
    proved = [law for law in wanted if isinstance(law, Law)]
    measured = [law for law in wanted if isinstance(law, MeasuredLaw)]
    tell = progress or (lambda text, done, total: None)
    total = len(wanted) + 2
    audit = _Audit(exam, expect or {}, timeout)
    tell("recording the graph", 0, total)
    audit.record()
    yield audit.report()
    for k, law in enumerate(proved):
        tell(f"{law.code} {law.name}", k + 1, total)
        audit.prove(law)
        yield audit.report()
    if measured:
        tell(f"{measured[0].code} {measured[0].name}", len(proved) + 1, total)
    for finding in measuring(exam, measured, expect or {}, timeout):
        audit.findings.append(finding)
        places = [each.name for each in measured]
        after = min(places.index(finding.law) + 1, len(measured) - 1)
        tell(f"{measured[after].code} {measured[after].name}", len(proved) + after + 1, total)
        yield audit.report()
    tell("the same words in another order", total - 1, total)
    audit.show()
    audit.notes.extend(exam.notes)
    tell("done", total, total)
    yield audit.report()


@dataclass
class _Audit:
    """What was found so far."""

    exam: Examination
    expect: Mapping[str, Expectation]
    timeout: float | None
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    swap: Swap | None = None
    maps: tuple[HeatMap, ...] = ()
    late: str = ""  # why no law can be proved: the graph is not to be had in time
    began: float = field(default_factory=time.perf_counter)

    def report(self) -> Report:
        """It as a report."""
        return report_of(self.exam, self.findings, self.notes, self.began).model_copy(
            update={"swap": self.swap, "heat_maps": self.maps}
        )

    def record(self) -> None:
        """Record the graph."""
        try:
            with within(self.timeout):
                failure = self.exam.failure
        except OutOfTime:
            failure = self.late = f"recording the graph was not done after {self.timeout:g} s"
        if failure is not None:
            self.notes.append(failure)

    def prove(self, law: Law) -> None:
        """Prove or refute one law."""
        expected = self.expect.get(law.name)
        reason = self.late
        if not reason:
            try:
                with within(self.timeout):
                    self.findings.extend(described(f) for f in prove_law(self.exam, law, Options(expect=expected)))
            except OutOfTime:
                reason = f"not done after {self.timeout:g} s"
            except OrderproofError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - one law that crashes must not cost the others
                reason = f"internal error, please report it: {type(error).__name__}: {first_line(error)}"
        if reason:
            self.findings.append(_failed(law, self.exam, expected, reason))

    def show(self) -> None:
        """Put two sentences side by side."""
        try:
            with within(self.timeout):
                made = None if self.late else swap_and_maps(self.exam.subject, seed=self.exam.seed)
        except OutOfTime:
            self.notes.append(f"the two sentences were not compared after {self.timeout:g} s")
        except (OrderproofError, RuntimeError) as error:
            self.notes.append(f"the two sentences could not be compared: {error}")
        else:
            if made is not None:
                self.swap, self.maps = made


def report_of(exam: Examination, findings: Sequence[Finding], notes: Sequence[str], began: float) -> Report:
    """A report of these findings."""
    return Report(
        orderproof=_version(), subject=subject_record(exam.subject), findings=tuple(findings),
        notes=tuple(dict.fromkeys(notes)), lemmas=_lemmas(findings), versions=versions(),
        seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def measuring(
    exam: Examination, chosen: Sequence[MeasuredLaw], expect: Mapping[str, Expectation], timeout: float | None = LIMIT
) -> Iterator[Finding]:
    """A finding for each measured law; without weights, of the tiny twin."""
    if not chosen:
        return
    subject = exam.numbers.subject
    for finding in Measuring(subject, chosen, expect, exam.seed, timeout).findings():
        if subject is exam.subject:
            yield described(finding)
        else:
            scope = finding.scope.model_copy(update={"assumptions": (f"measured on a tiny twin: {subject.detail}",)})
            yield described(finding.model_copy(update={"scope": scope}))


def _failed(law: Law, exam: Examination, expected: Expectation | None, reason: str) -> Finding:
    wanted = expected or law.expected(exam.subject.kind)
    return described(
        Finding(
            code=law.code,
            law=law.name,
            verdict="undecided",
            expected=wanted,
            met=is_met("undecided", wanted),
            scope=Scope(length=exam.length),
            reason=reason,
        )
    )


def described(finding: Finding) -> Finding:
    """The finding with the sentence of its law."""
    return finding.model_copy(update={"statement": find(finding.law).statement})


def _lemmas(findings: Sequence[Finding]) -> dict[str, str]:
    used: set[str] = set()
    for f in findings:
        for proof in (f.proof, f.completion.proof if f.completion else None):
            used.update(proof.lemmas if proof else ())
    return {name: text for name, text in sentences().items() if name in used}


def subject_record(subject: Subject) -> SubjectRecord:
    """What a report says of its subject."""
    return SubjectRecord(
        name=subject.name,
        kind=subject.kind,
        parameters=subject.parameters,
        layers=subject.layers,
        detail=subject.detail,
    )


def _version() -> str:
    from orderproof import __version__

    return __version__


def versions() -> dict[str, str]:
    """The versions a result was made with."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "orderproof": _version()}
    transformers: Any = sys.modules.get("transformers")
    if transformers is not None:
        found["transformers"] = str(transformers.__version__)
    return found
