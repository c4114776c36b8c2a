"""The two calls: `prove` one law, `audit` them all."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from torch import nn

from orderproof.auditing.apart import LIMIT
from orderproof.auditing.attempt import Weights
from orderproof.auditing.examine import Examination
from orderproof.auditing.steps import Progress, audit_steps, described, measuring, report_of
from orderproof.auditing.trials import checked_nodes
from orderproof.auditing.verdict import Options, prove_law
from orderproof.driver import Driver
from orderproof.errors import UsageError
from orderproof.laws import Law
from orderproof.laws.measured import MeasuredLaw, find
from orderproof.record import Expectation, Finding, Report
from orderproof.subjects import Subject, bundled, from_driver, from_module, load
from orderproof.subjects.modules import Inputs

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
        return described(results[0])
    for finding in results:
        if finding.output == output:
            return described(finding)
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
    findings = [described(f) for f in found]
    notes = list(exam.notes)
    if check_nodes and isinstance(chosen, Law) and exam.failure is None:
        notes.append(checked_nodes(exam, chosen))
    return report_of(exam, findings, notes, began)


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
