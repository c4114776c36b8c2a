"""Audit two engines against each other: one finding for each law, with the settings in which they differ."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.findings import finding_of, with_law
from orderproof.errors import OrderproofError, failure_reason
from orderproof.laws import find_port_law
from orderproof.laws.ports import PortLaw
from orderproof.ports import phrases
from orderproof.ports.engine_pair import EnginePair, PairResult, PairRun
from orderproof.ports.engine_process import EngineLimits
from orderproof.ports.reference import Reference
from orderproof.records.audit import (
    ComparisonRecord,
    Deviation,
    Expectation,
    Finding,
    Measurement,
    PortCause,
    PortEvidence,
    Scope,
)

STATEMENT = "Two engines give the same output in the call of this law."


def pair_findings(
    reference: Reference, pair: EnginePair, laws: Sequence[PortLaw], expect: Mapping[str, Expectation],
    limits: EngineLimits,
) -> list[Finding]:  # fmt: skip
    """The findings of two engines. Never raises for what they do."""
    run, found, causes = PairRun(reference, pair, laws, limits), list[Finding](), dict[tuple[str, ...], str]()
    expected = checked_expectations(expect, find_port_law)
    for law in laws if all(each.is_installed for each in pair.engines) else laws[:1]:
        began = time.perf_counter()
        try:
            result = run.result(law)
        except OrderproofError as error:
            result = PairResult("undecided", str(error))
        except Exception as error:  # noqa: BLE001 - one law that fails must not cost the others
            result = PairResult("undecided", failure_reason(error))
        finding = _finding(run, law, result, expected.get(law.name))
        key = tuple(sorted(f"{index} {each.candidate.setting}" for index, each in result.changed))
        if key and (first := causes.setdefault(key, law.code)) != law.code:
            finding = finding.model_copy(update={"same_cause_as": first, "remedy": ""})
        found.append(finding.model_copy(update={"seconds": time.perf_counter() - began}))
    return found


def _finding(run: PairRun, law: PortLaw, result: PairResult, stated: Expectation | None) -> Finding:
    profile, call = result.profile, result.call
    measurement = None
    if profile is not None and call is not None and result.verdict != "proved":
        record = ComparisonRecord(
            description=phrases.call_text(call), float32=profile.largest, verdict=result.verdict, lengths=(call.length,)
        )
        measurement = Measurement(tolerance=profile.tolerance, comparisons=(record,))
    finding = finding_of(
        law, result.verdict, result.reason, expected=stated or law.expected(run.reference.kind),
        scope=Scope(length=0 if call is None else call.length, weights="these"), output=run.pair.name,
        deviation=Deviation() if profile is None else Deviation(float32=profile.largest),
        measurement=measurement, port=_evidence(run, result), remedy=_remedy(run, result),
    )  # fmt: skip
    return with_law(finding, stated=stated is not None).model_copy(update={"statement": STATEMENT})


def _evidence(run: PairRun, result: PairResult) -> PortEvidence:
    profile, (first, second) = result.profile, run.pair.engines
    causes = tuple(
        PortCause(
            cause=each.candidate.cause, setting=each.candidate.setting, stated=each.candidate.stated,
            assumed=each.candidate.assumed, remaining=each.remaining.largest, engine=run.pair.engines[index].name,
        )
        for index, each in result.changed
    )  # fmt: skip
    return PortEvidence(
        engine=second.name, version=second.version, first_engine=first.name, first_version=first.version,
        tokens=0 if result.call is None else result.call.length, causes=causes,
        first_token=None if profile is None else profile.first,
        growth=() if profile is None or profile.first is None else profile.growth(),
        explained=bool(causes) and all(result.explanations[index].is_complete for index in result.differing),
    )  # fmt: skip


def _remedy(run: PairRun, result: PairResult) -> str:
    """The change that the one engine needs that differs from the reference."""
    if result.verdict != "refuted":
        return ""
    if len(result.differing) != 1:
        return "Audit the checkpoint against each engine alone."
    (index,) = result.differing
    text = phrases.remedy_text(run.runs[index], result.results[index])
    return f"{run.pair.engines[index].name} differs from the reference, and the other does not. {text}"
