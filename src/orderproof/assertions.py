"""Laws of order as assertions: in a test suite, or anywhere a model is built.

    from orderproof import assert_conforms

    assert_conforms(model, inputs, kind="decoder")

torch and pydantic are imported when something is asserted: pytest imports this module in every session of every project
of the environment.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import nn

    from orderproof.auditing.record.law_walk import Weights
    from orderproof.models import Subject
    from orderproof.models.plain_module import Inputs
    from orderproof.records.audit import Expectation, Finding, Report
    from orderproof.subject_spec import StatedAxes

_listeners: list[Callable[[Report], None]] = []


def on_report(listen: Callable[[Report], None]) -> None:
    """Call this with the report of each assertion, before it passes or fails."""
    _listeners.append(listen)


def assert_law(
    model: nn.Module | Subject | str,
    law: str,
    inputs: Inputs | None = None,
    *,
    length: int | None = None,
    expect: Expectation = "holds",
    weights: Weights = "all",
    token_axis: int | Sequence[int | None] | None = None,
    outputs: StatedAxes | None = None,
    together: bool = False,
    mode: str = "eval",
    roles: Mapping[str, str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> tuple[Finding, ...]:
    """Assert that a law holds for a model (`expect="fails"`: that it fails), at every output to which it applies.

    Returns the findings. Raises `AssertionError` where a check fails or is undecided and where the law applies to no
    output; `UsageError` and `SubjectError` for wrong arguments.
    """
    __tracebackhide__ = True
    from orderproof.auditing.api import as_subject, audit_context, report_on_law
    from orderproof.errors import UsageError
    from orderproof.laws import find_law
    from orderproof.models.modes import check_mode
    from orderproof.records.audit import Expectation
    from orderproof.subject_spec import Layout, as_shapes

    if expect not in get_args(Expectation):
        raise UsageError(f"expected expect to be one of {', '.join(get_args(Expectation))}; got {expect!r}")
    with _suppress_torch_warnings(), _preserve_training_mode(model):
        stated = Layout(token_axis, outputs, together, mode=check_mode(mode), shapes=as_shapes(shapes))
        subject = as_subject(model, inputs=inputs, layout=stated.with_roles(roles), length=length)
        context = audit_context(subject, length=length, seed=seed)
        report = report_on_law(context, law, expect={find_law(law).name: expect}, weights=weights)
    return _asserted(report)


def assert_conforms(
    model: nn.Module | Subject | str,
    inputs: Inputs | None = None,
    *,
    kind: str,
    laws: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    fast: bool = False,
    strict: bool = False,
    baseline: str | Path | None = None,
    length: int | None = None,
    token_axis: int | Sequence[int | None] | None = None,
    outputs: StatedAxes | None = None,
    together: bool = False,
    mode: str = "eval",
    roles: Mapping[str, str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> tuple[Finding, ...]:
    """Assert that a model does all that a model of its kind ("decoder" or "encoder") should do.

    `expect` overrides expectations by law, `fast` leaves out what is measured, `strict` fails for an expected law that
    was not tested, and `baseline` is a file of accepted findings. Returns the findings. Raises `AssertionError` with
    the failed and undecided checks, and for entries of the baseline that have expired or that no finding needs;
    `UsageError` and `SubjectError` for wrong arguments.
    """
    __tracebackhide__ = True
    from orderproof.auditing.api import audit
    from orderproof.configuration.baseline import read_baseline

    accepted = None if baseline is None else read_baseline(Path(baseline).expanduser(), today=date.today())  # noqa: DTZ011
    with _suppress_torch_warnings(), _preserve_training_mode(model):
        report = audit(
            model, laws=laws, inputs=inputs, length=length, token_axis=token_axis, outputs=outputs, together=together,
            mode=mode, roles=roles, shapes=shapes, expect=expect, kind=kind, seed=seed, strict=strict, fast=fast,
        )  # fmt: skip
    if accepted is not None:
        report = accepted.accept(report)
    problems = [] if accepted is None else accepted.problems()
    nothing = [] if report.decided else ["no law was decided, so nothing was asserted"]
    return _asserted(report, [*problems, *nothing])


def _asserted(report: Report, problems: Sequence[str] = ()) -> tuple[Finding, ...]:
    """The findings of a report that has no failed check, and of a baseline without problems."""
    __tracebackhide__ = True
    for listen in _listeners:
        listen(report)
    if message := "\n".join(text for text in (_failure_message(report), *problems) if text):
        raise AssertionError(message)
    return report.findings


@contextmanager
def _suppress_torch_warnings() -> Iterator[None]:
    """Silence the warnings of torch while it records a graph: as errors they would decide the verdict.

    pytest's log handlers are removed from torch's trace, which has thousands of empty lines; TORCH_TRACE still works.
    """
    trace = logging.getLogger("torch.__trace")
    handlers = [handler for handler in trace.handlers if type(handler).__module__.startswith("_pytest.")]
    for handler in handlers:
        trace.removeHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in handlers:
            trace.addHandler(handler)


@contextmanager
def _preserve_training_mode(model: object) -> Iterator[None]:
    """Restore the training mode of every submodule: an audit switches the module to eval mode."""
    from torch import nn

    modes = [(part, part.training) for part in model.modules()] if isinstance(model, nn.Module) else []
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _failure_message(report: Report) -> str:
    """The failed and undecided findings with their evidence, over several lines; empty without any."""
    from orderproof.report import phrases
    from orderproof.report.evidence import align_rows, evidence_rows, finding_headline

    findings = report.findings
    name = phrases.escape_control_characters(report.subject.name)
    unmet = report.unmet
    if not unmet and findings[0].expected != "any" and all(f.verdict == "not_applicable" for f in findings):
        reasons = "; ".join(f"{f.output}: {f.reason}" for f in findings)
        return phrases.escape_control_characters(
            f"{phrases.law_title(findings[0])} does not apply to {name}, so nothing was asserted: {reasons}"
        )
    lines = []
    for finding in unmet:
        lines += [f"{finding_headline(finding)}: {name}", *align_rows(evidence_rows(finding))]
    return "\n".join(lines)
