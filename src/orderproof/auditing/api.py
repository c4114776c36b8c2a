"""The two entry points: `prove` decides one law, `audit` all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import get_args

from torch import nn
from torch.export import ExportedProgram

from orderproof.adapter import ModelAdapter
from orderproof.auditing.built_report import build_report
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.sandbox import LAW_TIMEOUT
from orderproof.auditing.decide.verdict import prove_law
from orderproof.auditing.expectations import check_expectation, checked_expectations
from orderproof.auditing.explain.findings import with_law
from orderproof.auditing.measured import measure_laws
from orderproof.auditing.port_audit import Against, audit_against
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import Weights
from orderproof.auditing.run import expectations_of_named_laws, run_audit
from orderproof.auditing.search.node_facts import check_node_facts
from orderproof.auditing.work import Progress
from orderproof.errors import UsageError
from orderproof.laws import ProvedLaw, find_model_law
from orderproof.laws.measured import MeasuredLaw
from orderproof.models import Subject, bundled, from_adapter, load
from orderproof.models.modes import check_mode
from orderproof.models.plain_module import Inputs, of_layout, refuse_layout
from orderproof.models.process_state import preserved_settings
from orderproof.models.trial_call import call_timeout
from orderproof.recording.owned_state import shared_walks
from orderproof.recording.restored_state import unchanged_module
from orderproof.records.audit import Expectation, Finding, Report
from orderproof.subject_spec import NO_LAYOUT, Layout, StatedAxes, as_shapes, check_length, kind_assumption
from orderproof.time_limit import TimeAllowed


def as_subject(
    subject: Subject | ModelAdapter | nn.Module | ExportedProgram | str | None,
    *,
    inputs: Inputs | None = None,
    layout: Layout = NO_LAYOUT,
    kind: str | None = None,
    length: int | None = None,
) -> Subject:
    """The subject for a subject, an adapter, a module or exported program, a text as on the command line, or None.

    None is the bundled model.

    `inputs` and `layout` are for a module or the text of one, `length` is that of the inputs of a file [tokens]. `kind`
    is "decoder" or "encoder", which decides what is expected of it; by default it is read from the model. Raises
    `UsageError`, `SubjectError`.
    """
    assume = kind_assumption(kind)
    if isinstance(subject, str):
        return load(subject, inputs=inputs, layout=layout, assume=assume, length=length)
    if isinstance(subject, nn.Module | ExportedProgram):
        return of_layout(subject, inputs, layout, assume=assume)
    if subject is not None and not isinstance(subject, Subject | ModelAdapter):
        raise UsageError(
            f"expected a torch.nn.Module, a text such as arch:llama, or a subject; got {_described(subject)}"
        )
    what = "the bundled model" if subject is None else f"a {type(subject).__name__}, which states its inputs itself"
    refuse_layout("subject", layout, what)
    if inputs is not None:
        raise UsageError(f"expected no inputs with {what}; they would be ignored")
    if subject is None:
        return bundled(assume=assume)
    if assume is not None:
        raise UsageError(f"expected kind for a module or a text; got it for a {type(subject).__name__}")
    return subject if isinstance(subject, Subject) else from_adapter(subject)


def _described(given: object) -> str:
    """The kind of an object that is no subject, and what to do instead."""
    if isinstance(given, type):
        return f"the class {given.__name__}; make an instance: {given.__name__}(...)"
    if isinstance(given, tuple | list):
        return f"a {type(given).__name__}; pass the module alone, and the example inputs as inputs="
    if callable(given):
        return f"a {type(given).__name__}; call it, or name it as file.py:name"
    return f"a {type(given).__name__}"


def validate_length(subject: Subject, length: int | None) -> int:
    """The length to audit at [tokens]. Raises `UsageError` if the model cannot take it."""
    if length is None:
        return subject.default_length
    check_length(length)
    if subject.max_length is not None and length > subject.max_length:
        raise UsageError(
            f"expected a length of at most {subject.max_length}, the size of {subject.name}'s position table; "
            f"got {length}"
        )
    return length


def prove(
    subject: Subject | ModelAdapter | nn.Module | ExportedProgram | str | None,
    law: str,
    *,
    inputs: Inputs | None = None,
    length: int | None = None,
    token_axis: int | Sequence[int | None] | None = None,
    outputs: StatedAxes | None = None,
    together: bool = False,
    mode: str = "eval",
    roles: Mapping[str, str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    weights: Weights = "all",
    uniform: Sequence[str] = (),
    expect: Expectation | None = None,
    kind: str | None = None,
    output: str | None = None,
    seed: int = 0,
) -> Finding:
    """Prove or refute one law for one output (the first by default), or measure a law that is measured.

    `weights`: prove it for all weights, or use the values of these. `uniform`: entries to make uniform first, by
    origin or module (the model without those positions). `length` is in tokens. `shapes` are those of the inputs of an
    ONNX file: {"mel": (2, 80, 320)}. The law is expected to hold,
    unless `expect` ("fails", or "any" to describe the model) or the kind of the model (`kind`: "decoder", "encoder")
    says otherwise. Raises `UsageError`, `SubjectError`.
    """
    check_expectation(expect, law)
    if weights not in get_args(Weights):
        raise UsageError(f"expected weights to be {' or '.join(get_args(Weights))}; got {weights!r}")
    layout = Layout(token_axis, outputs, together, mode=check_mode(mode), shapes=as_shapes(shapes)).with_roles(roles)
    with _unchanged(subject):
        found = as_subject(subject, inputs=inputs, layout=layout, kind=kind, length=length)
        context = audit_context(found, length=length, seed=seed)
        results = _findings(context, law, expect, weights, uniform)
    if output is None:
        return results[0]
    for finding in results:
        if finding.output == output:
            return finding
    raise UsageError(f"expected an output, one of {', '.join(f.output for f in results)}; got {output!r}")


def audit_context(subject: Subject, *, length: int | None = None, seed: int = 0) -> AuditContext:
    """The context in which several laws are decided for one subject at one length [tokens]."""
    return AuditContext(subject, validate_length(subject, length), seed)


def report_on_law(
    context: AuditContext,
    law: str,
    *,
    expect: Mapping[str, Expectation] | None = None,
    weights: Weights = "all",
    uniform: Sequence[str] = (),
    check_nodes: bool = False,
) -> Report:
    """The report on one law: a finding for each output. Raises `UsageError`, `SubjectError`."""
    began = time.perf_counter()
    chosen = find_model_law(law)
    expected = checked_expectations(expect, find_model_law).get(chosen.name)
    findings = _findings(context, law, expected, weights, uniform)
    notes = list(context.notes)
    if check_nodes and isinstance(chosen, ProvedLaw) and context.export_failure is None:
        with preserved_settings(context.subject.name):
            notes.append(check_node_facts(context, chosen))
    report = build_report(context, findings, notes, began)
    if not uniform:
        return report
    name = f"{report.subject.name} with the entries of {', '.join(uniform)} the same for every token"
    return report.model_copy(update={"subject": report.subject.model_copy(update={"name": name})})


def _findings(
    context: AuditContext, law: str, expect: Expectation | None, weights: Weights, uniform: Sequence[str]
) -> list[Finding]:
    chosen = find_model_law(law)
    if not uniform:  # with entries made uniform it is another model, of which nothing is expected
        named = expectations_of_named_laws([chosen], context.subject.model_kind, None)
        expect = expect or named.get(chosen.name)
    if uniform and isinstance(chosen, MeasuredLaw):
        raise UsageError(f"expected no uniform entries with {chosen.name}, which is measured on the model itself")
    if isinstance(chosen, MeasuredLaw):
        return list(measure_laws(context, [chosen], {chosen.name: expect} if expect else {}))
    options = ProofOptions(weights=weights, expect=expect, uniform_entries=tuple(uniform))
    with preserved_settings(context.subject.name), shared_walks():
        return [with_law(finding, stated=expect is not None) for finding in prove_law(context, chosen, options)]


def audit(
    subject: Subject | ModelAdapter | nn.Module | ExportedProgram | str | None = None,
    *,
    laws: Sequence[str] | None = None,
    inputs: Inputs | None = None,
    length: int | None = None,
    token_axis: int | Sequence[int | None] | None = None,
    outputs: StatedAxes | None = None,
    together: bool = False,
    mode: str = "eval",
    roles: Mapping[str, str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    kind: str | None = None,
    seed: int = 0,
    timeout: float | None = LAW_TIMEOUT,
    budget: float | None = None,
    strict: bool = False,
    fast: bool = False,
    against: Against | None = None,
    progress: Progress | None = None,
) -> Report:
    """Decide which laws a subject obeys and where order enters it; `timeout` is for each law and the first call [s].

    `budget` is for all laws together [s]: they are then decided in the order of what they find per second.
    `laws` are names or codes; without them all laws are decided. A law that is named is expected to hold, a property
    too, where its kind expects nothing. `kind` ("decoder" or "encoder") decides what else is expected; `expect`
    overrides the expected results by law: with `{"permutation": "any"}` it is not a check. With `strict`, an expected
    law that was not tested makes the exit code 3. With `fast`, only the laws that are proved are decided, and no call
    of another length, number of rows or mask is compared. With `against`, an engine by name or several, the laws of
    ports are decided instead: the engine computes what the subject computes in transformers. `inputs`, `token_axis`,
    `outputs`, `together`, `roles` and `mode` are those of `from_module`; `shapes` are those of the inputs of an ONNX
    file: {"mel": (2, 80, 320)}. The graph is recorded and run in this
    process, so a call that ends it (an abort, `os._exit`) ends the caller; the command `orderproof audit`
    writes the report so far. Raises `UsageError`, `SubjectError`.
    """
    laws = [laws] if isinstance(laws, str) else laws
    layout = Layout(token_axis, outputs, together, mode=check_mode(mode), shapes=as_shapes(shapes)).with_roles(roles)
    if against is not None:
        given = {
            "inputs": inputs,
            "length": length,
            layout.stated: layout.stated or None,
            "kind": kind,
            "fast": fast or None,
            "budget": budget,
        }
        if unwanted := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"expected no {unwanted[0]} with against, which compares two implementations")
        reports = audit_against(
            subject, against, laws=laws, expect=expect, seed=seed, timeout=timeout, progress=progress
        )
        return _last(reports, strict=strict)
    allowed = TimeAllowed(timeout, budget)
    with _unchanged(subject):
        with call_timeout(timeout):
            found = as_subject(subject, inputs=inputs, layout=layout, kind=kind, length=length)
        context = audit_context(found, length=length, seed=seed)
        reports = run_audit(context, chosen=laws, expect=expect, allowed=allowed, fast=fast, progress=progress)
        return _last(reports, strict=strict)


def _last(reports: Iterator[Report], *, strict: bool) -> Report:
    """The report after the last step."""
    *_, last = reports
    return last.model_copy(update={"strict": strict})


@contextmanager
def _unchanged(subject: object) -> Iterator[None]:
    """Undo what calls in the block change in a module that the caller goes on to use."""
    with shared_walks(), unchanged_module(subject) if isinstance(subject, nn.Module) else nullcontext():
        yield
