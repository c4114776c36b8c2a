"""Audit a model against engines: findings of the laws of ports, one for each law and engine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orderproof._version import __version__
from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.findings import finding_of, with_law
from orderproof.auditing.pair_audit import pair_findings
from orderproof.auditing.work import Progress
from orderproof.errors import OrderproofError, failure_reason
from orderproof.laws import find_port_law, port_laws
from orderproof.laws.ports import PortLaw
from orderproof.ports import phrases
from orderproof.ports.engine_pair import EnginePair
from orderproof.ports.engine_process import EngineLimits
from orderproof.ports.engines.engine import InferenceEngine
from orderproof.ports.engines.registry import find_engines
from orderproof.ports.explanation import Explanation
from orderproof.ports.load import load_reference
from orderproof.ports.port_run import PortResult, PortRun
from orderproof.ports.reference import Reference
from orderproof.records.audit import (
    ComparisonRecord,
    Deviation,
    Expectation,
    Finding,
    Measurement,
    PortCause,
    PortEvidence,
    Report,
    Scope,
    Verdict,
)
from orderproof.records.document import versions
from orderproof.tolerances import CONTROL_FACTOR

Compared = InferenceEngine | EnginePair
Against = str | Compared | Sequence[str | Compared]


def audit_against(
    subject: Any,
    against: Against,
    *,
    laws: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    seed: int = 0,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """The report so far, after each engine; `timeout` is for each call of an engine [s].

    Raises `UsageError` for an unknown engine or law, `SubjectError` for a subject without logits.
    """
    compared = chosen_engines(against)
    engines = [engine for each in compared for engine in each.engines]
    chosen = [find_port_law(name) for name in laws] if laws else list(port_laws())
    expected = checked_expectations(expect, find_port_law)
    show = progress or (lambda text, done, total: None)
    began, findings = time.perf_counter(), list[Finding]()
    show("building the reference", 0, len(compared) + 1)
    is_module = not any(engine.reads_checkpoint for engine in engines)
    width = max(engine.head_width for engine in engines)
    embeds = all(engine.encoder_abilities for engine in engines)
    reference = load_reference(subject, seed=seed, head_width=width, may_be_module=is_module, may_be_encoder=embeds)
    limits = EngineLimits() if timeout is None else EngineLimits(seconds=timeout)
    for index, each in enumerate(compared):
        show(f"comparing with {each.name}", index + 1, len(compared) + 1)
        if isinstance(each, EnginePair):
            findings.extend(pair_findings(reference, each, chosen, expected, limits))
        else:
            findings.extend(engine_findings(reference, each.for_reference(reference), chosen, expected, limits))
        yield _report(reference, findings, [engine for one in compared[: index + 1] for engine in one.engines], began)


def chosen_engines(against: Against) -> list[Compared]:
    """The engines by name, NAME:TARGET or instance, and pairs as ENGINE,ENGINE, each once.

    Raises `UsageError` for an unknown one.
    """
    given = [against] if isinstance(against, (str, InferenceEngine, EnginePair)) else list(against)
    chosen = [_found(each) if isinstance(each, str) else each for each in given]
    return list({each.name: each for each in chosen}.values())


def _found(spec: str) -> Compared:
    found = find_engines(spec)
    return EnginePair(*found) if len(found) == 2 else found[0]


def engine_findings(
    reference: Reference, engine: InferenceEngine, laws: Sequence[PortLaw], expect: Mapping[str, Expectation],
    limits: EngineLimits,
) -> list[Finding]:  # fmt: skip
    """The findings of one engine. Never raises for what the engine does."""
    run, found, causes = PortRun(reference, engine, laws, limits), list[Finding](), dict[Any, str]()
    for law in laws if engine.is_installed else laws[:1]:  # one line says how to install it
        began = time.perf_counter()
        try:
            result = run.result(law)
        except OrderproofError as error:
            result = PortResult(law, "undecided", str(error))
        except Exception as error:  # noqa: BLE001 - one law that fails must not cost the others
            result = PortResult(law, "undecided", failure_reason(error))
        finding = _finding(run, result, expect.get(law.name))
        settings = sorted((each.candidate.setting, each.candidate.assumed) for each in result.explanation.causes)
        key = (*settings, result.beyond)
        if finding.verdict == "refuted" and any(key):
            if (first := causes.setdefault(key, law.code)) != law.code:
                finding = finding.model_copy(update={"same_cause_as": first, "remedy": ""})
        found.append(finding.model_copy(update={"seconds": time.perf_counter() - began}))
    return found


def _finding(run: PortRun, result: PortResult, stated: Expectation | None) -> Finding:
    law, profile = result.law, result.profile
    expected = stated or law.expected(run.reference.kind)
    verdict: Verdict = result.verdict
    reason = phrases.result_text(run, result)
    if verdict == "held" and profile is not None and result.control is not None:
        if result.control < CONTROL_FACTOR * profile.tolerance:
            verdict = "undecided"
            reason = f"no difference was seen, but other tokens change the output by only {result.control:.1g}"
    assumptions = result.notes
    if run.needs_older_keys and law.ability is not None:
        assumptions += (f"measured with {', '.join(run.older_keys)} added to config.json: see OP601",)
    finding = finding_of(
        law, verdict, reason, expected=expected,
        scope=Scope(length=0 if result.call is None else result.call.length, weights="these", assumptions=assumptions),
        output=run.engine.name,
        deviation=Deviation() if profile is None else Deviation(float32=profile.largest),
        measurement=_measurement(result, verdict), port=_evidence(run, result),
        remedy=phrases.remedy_text(run, result) if verdict == "refuted" else "",
    )  # fmt: skip
    return with_law(finding, stated=stated is not None)


def _measurement(result: PortResult, verdict: Verdict) -> Measurement | None:
    if result.profile is None or result.call is None or verdict not in ("held", "refuted", "undecided"):
        return None
    record = ComparisonRecord(
        description=phrases.call_text(result.call), float32=result.profile.largest,
        verdict=verdict, lengths=(result.call.length,),
    )  # fmt: skip
    return Measurement(tolerance=result.profile.tolerance, control_difference=result.control, comparisons=(record,))


def _causes(explanation: Explanation) -> tuple[PortCause, ...]:
    return tuple(
        PortCause(
            cause=each.candidate.cause, setting=each.candidate.setting, stated=each.candidate.stated,
            assumed=each.candidate.assumed, remaining=each.remaining.largest,
        )
        for each in explanation.causes
    )  # fmt: skip


def _evidence(run: PortRun, result: PortResult) -> PortEvidence:
    profile = result.profile
    uses_older = run.needs_older_keys if result.law.ability is None or profile is not None else False
    again = result.with_older_keys
    used = run.run.seconds if result.law.ability is None and run.engine.is_installed else 0.0
    return PortEvidence(
        engine=run.engine.name, version=run.engine.version,
        tokens=0 if result.call is None else result.call.length, rounding=result.rounding,
        first_token=None if profile is None else profile.first,
        growth=() if profile is None or profile.first is None else profile.growth(),
        causes=_causes(result.explanation), older_causes=_causes(result.older_explanation),
        explained=result.explanation.is_complete, older_explained=result.older_explanation.is_complete,
        older_keys=tuple(run.older_keys) if uses_older or again is not None else (),
        with_older_keys=None if again is None else again.largest, needs_older_keys=uses_older,
        seconds=round(used, 2), import_seconds=round(run.engine.import_seconds, 2) if used else 0.0,
    )  # fmt: skip


def _report(
    reference: Reference, findings: Sequence[Finding], engines: Sequence[InferenceEngine], began: float
) -> Report:
    used: dict[str, str] = versions()
    for engine in engines:
        for name, version in engine.versions.items():
            used[name if used.get(name, version) == version else f"{name} of {engine.name}"] = version
    return Report(
        orderproof_version=__version__, subject=reference.record(), findings=tuple(findings),
        versions=used, seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip
