"""The two calls: `prove` one law, `audit` them all."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from orderproof.auditing.apart import LIMIT, Measuring
from orderproof.auditing.attempt import Weights
from orderproof.auditing.examine import Examination
from orderproof.auditing.limits import OutOfTime, within
from orderproof.auditing.pictures import swap_and_maps
from orderproof.auditing.trials import checked_nodes
from orderproof.auditing.verdict import Options, is_met, prove_law
from orderproof.driver import Driver
from orderproof.errors import OrderproofError, UsageError
from orderproof.laws import Law, laws
from orderproof.laws.measured import MeasuredLaw, find, measured_laws
from orderproof.prover.capture import first_line
from orderproof.prover.rule import sentences
from orderproof.record import Expectation, Finding, HeatMap, Report, Scope, SubjectRecord, Swap
from orderproof.subjects import Subject, bundled, from_driver, from_module, load
from orderproof.subjects.modules import Inputs

Progress = Callable[[str, int, int], None]
MINIMUM = 2


def as_subject(
    subject: Subject | Driver | nn.Module | str | None, *, inputs: Inputs | None = None, token_axis: int | None = None
) -> Subject:
    """A subject from whatever names one: a subject, a driver, a module, a text as on the command line, None."""
    if subject is None:
        return bundled()
    if isinstance(subject, Subject):
        return subject
    if isinstance(subject, str):
        return load(subject)
    if isinstance(subject, Driver):
        return from_driver(subject)
    return from_module(subject, inputs, token_axis=token_axis)


def checked_length(subject: Subject, length: int | None) -> int:
    """The length to work at. Raises `UsageError` where the model cannot take it."""
    if length is None:
        return subject.length
    if length < MINIMUM:
        raise UsageError(f"expected a length of at least {MINIMUM} tokens; got {length}; order needs two")
    if subject.max_length is not None and length > subject.max_length:
        raise UsageError(
            f"expected a length of at most {subject.max_length}, the size of {subject.name}'s position table; "
            f"got {length}"
        )
    return length


def prove(
    subject: Subject | Driver | nn.Module | str | None,
    law: str,
    *,
    inputs: Inputs | None = None,
    length: int | None = None,
    token_axis: int | None = None,
    weights: Weights = "all",
    uniform: Sequence[str] = (),
    expect: Expectation | None = None,
    output: str | None = None,
    seed: int = 0,
) -> Finding:
    """Prove or refute one law of one output (the first by default); measure it, if it is one of behaviour.

    `weights`: prove it for all weights, or consult these. `uniform`: entries to make uniform first, by origin
    or module (the model without those positions). Raises `UsageError`, `SubjectError`.
    """
    found = as_subject(subject, inputs=inputs, token_axis=token_axis)
    exam = examination(found, length=length, seed=seed)
    chosen = find(law)
    if isinstance(chosen, MeasuredLaw):
        results: Sequence[Finding] = list(measuring(exam, [chosen], {chosen.name: expect} if expect else {}))
    else:
        results = prove_law(exam, chosen, Options(weights=weights, expect=expect, uniform=tuple(uniform)))
    if output is None:
        return _described(results[0])
    for finding in results:
        if finding.output == output:
            return _described(finding)
    raise UsageError(f"expected an output, one of {', '.join(f.output for f in results)}; got {output!r}")


def examination(subject: Subject, *, length: int | None = None, seed: int = 0) -> Examination:
    """What several laws need to know of a subject at one length, computed once."""
    return Examination(subject, checked_length(subject, length), seed)


def one_law(
    exam: Examination,
    law: str,
    *,
    expect: Mapping[str, Expectation] | None = None,
    weights: Weights = "all",
    uniform: Sequence[str] = (),
    check_nodes: bool = False,
) -> Report:
    """A report on one law: a finding for each output."""
    began = time.perf_counter()
    chosen = find(law)
    options = Options(weights=weights, expect=(expect or {}).get(chosen.name), uniform=tuple(uniform))
    found: Iterable[Finding]
    if isinstance(chosen, MeasuredLaw):
        found = measuring(exam, [chosen], expect or {})
    else:
        found = prove_law(exam, chosen, options)
    findings = [_described(f) for f in found]
    notes = list(exam.notes)
    if check_nodes and isinstance(chosen, Law) and exam.failure is None:
        notes.append(checked_nodes(exam, chosen))
    return Report(
        orderproof=_version(), subject=subject_record(exam.subject), findings=tuple(findings), notes=tuple(notes),
        lemmas=_lemmas(findings), versions=versions(), seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def audit(
    subject: Subject | Driver | nn.Module | str | None = None,
    *,
    laws: Sequence[str] | None = None,
    inputs: Inputs | None = None,
    length: int | None = None,
    token_axis: int | None = None,
    expect: Mapping[str, Expectation] | None = None,
    seed: int = 0,
    timeout: float | None = LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Which laws of order a subject obeys, and where order enters it; `timeout` is for each law [seconds]."""
    found = as_subject(subject, inputs=inputs, token_axis=token_axis)
    report = None
    exam = examination(found, length=length, seed=seed)
    for report in audit_steps(exam, chosen=laws, expect=expect, timeout=timeout, progress=progress):  # noqa: B007
        pass
    assert report is not None
    return report


def audit_steps(
    exam: Examination,
    *,
    chosen: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    timeout: float | None = LIMIT,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """The report so far, after each step: an interrupted audit still has what it found."""
    began = time.perf_counter()
    wanted = _wanted(chosen, expect)
    subject = exam.subject
    tell = progress or (lambda text, done, total: None)
    total = len(wanted) + 2
    findings: list[Finding] = []
    notes: list[str] = []
    swap: Swap | None = None
    maps: tuple[HeatMap, ...] = ()

    def so_far() -> Report:
        return Report(
            orderproof=_version(), subject=subject_record(subject), findings=tuple(findings), swap=swap,
            heat_maps=maps, notes=tuple(dict.fromkeys(notes)), lemmas=_lemmas(findings), versions=versions(),
            seconds=round(time.perf_counter() - began, 3),
        )  # fmt: skip

    tell("recording the graph", 0, total)
    if exam.failure is not None:
        notes.append(exam.failure)
    yield so_far()
    proved = [law for law in wanted if isinstance(law, Law)]
    measured = [law for law in wanted if isinstance(law, MeasuredLaw)]
    for k, law in enumerate(proved):
        tell(f"{law.code} {law.name}", k + 1, total)
        expected = (expect or {}).get(law.name)
        try:
            with within(timeout):
                findings.extend(_described(f) for f in prove_law(exam, law, Options(expect=expected)))
        except OutOfTime:
            findings.append(_failed(law, exam, expected, f"not done after {timeout:g} s"))
        except OrderproofError as error:
            findings.append(_failed(law, exam, expected, str(error)))
        except Exception as error:  # noqa: BLE001 - one law that crashes must not cost the others
            reason = f"internal error, please report it: {type(error).__name__}: {first_line(error)}"
            findings.append(_failed(law, exam, expected, reason))
        yield so_far()
    results = measuring(exam, measured, expect or {}, timeout)
    for k, rule in enumerate(measured):
        tell(f"{rule.code} {rule.name}", len(proved) + k + 1, total)
        findings.append(_described(next(results)))
        yield so_far()
    tell("the same words in another order", total - 1, total)
    try:
        made = swap_and_maps(subject, seed=exam.seed)
    except (OrderproofError, RuntimeError) as error:
        notes.append(f"the two sentences could not be compared: {error}")
    else:
        if made is not None:
            swap, maps = made
    notes.extend(exam.notes)
    tell("done", total, total)
    yield so_far()


def measuring(
    exam: Examination, chosen: Sequence[MeasuredLaw], expect: Mapping[str, Expectation], timeout: float | None = LIMIT
) -> Iterator[Finding]:
    """A finding for each measured law; without weights, of the tiny twin."""
    subject = exam.numbers.subject
    for finding in Measuring(subject, chosen, expect, exam.seed, timeout).findings():
        if subject is exam.subject:
            yield finding
        else:
            scope = finding.scope.model_copy(update={"assumptions": (f"measured on a tiny twin: {subject.detail}",)})
            yield finding.model_copy(update={"scope": scope})


def _wanted(chosen: Sequence[str] | None, expect: Mapping[str, Expectation] | None) -> tuple[Law | MeasuredLaw, ...]:
    for name in expect or {}:
        find(name)
    return tuple(find(name) for name in chosen) if chosen else (*laws(), *measured_laws())


def _failed(law: Law, exam: Examination, expected: Expectation | None, reason: str) -> Finding:
    wanted = expected or law.expected(exam.subject.kind)
    return _described(
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


def _described(finding: Finding) -> Finding:
    return finding.model_copy(update={"statement": find(finding.law).statement})


def _lemmas(findings: list[Finding]) -> dict[str, str]:
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
