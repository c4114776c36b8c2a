"""Find a violation again on a model that a script builds, and write the script and the text of an issue about it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.auditing.api import audit_context
from orderproof.auditing.sandbox import DECODER_PART
from orderproof.auditing.witness import WitnessSearch
from orderproof.errors import OrderproofError, ReproductionError, UsageError, first_line
from orderproof.laws import ProvedLaw, find_law
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw
from orderproof.laws.measured.lengths import measured_lengths
from orderproof.library_messages import suppress_warnings
from orderproof.models import Subject
from orderproof.models.hf import build_subject
from orderproof.models.hf.decoder_adapter import base_model_class, has_text_decoder
from orderproof.models.hf.probe import probe_subject
from orderproof.prover.counterexample import Counterexample
from orderproof.prover.execution import relative_difference
from orderproof.records.audit import Finding
from orderproof.reproduction.call_code import CallWriter, OutputPlace, find_vector, needed_events
from orderproof.reproduction.call_recorder import CallRecorder, ModelCall, watched_adapter
from orderproof.reproduction.issue import issue_text
from orderproof.reproduction.model_code import ModelCode, from_config, from_folder
from orderproof.reproduction.script import MAX_LINES, script_text, threshold
from orderproof.subject_spec import ARCH_PREFIX, check_spec
from orderproof.tolerances import FLOAT32_TOLERANCE

NOISE_LEVELS = (0.0, 0.1, 0.3)  # of the weights: without it, some defects are hidden behind zeros and ones
LEAST_FACTOR = 3  # a difference is this many thresholds, so that other versions of torch see it too


@dataclass(frozen=True)
class Reproduction:
    """A violation that was found again: the script that shows it, and the text of an issue."""

    finding: Finding
    script: str
    issue: str


@dataclass(frozen=True)
class _Shown:
    """Two vectors of recorded calls."""

    recorder: CallRecorder
    expected: OutputPlace
    actual: OutputPlace
    what: str
    must_differ: bool
    every_call: bool  # what earlier calls leave matters


def reproductions(subject: Subject, findings: tuple[Finding, ...]) -> dict[str, Reproduction | str]:
    """The reproduction of each refuted check of a report by its code, or why there is none."""
    made: dict[str, Reproduction | str] = {}
    for finding in findings:
        if finding.outcome == "fail" and finding.code not in made:
            try:
                made[finding.code] = reproduce(subject, finding)
            except OrderproofError as error:
                made[finding.code] = str(error)
    return made


def reproduce(subject: Subject, finding: Finding) -> Reproduction:
    """The script and the issue of a refuted check. Raises `UsageError`, `ReproductionError`."""
    if finding.verdict != "refuted":
        raise UsageError(f"expected a refuted law; {finding.code} {finding.law} is {finding.verdict}")
    law = find_law(finding.law)
    failures: list[str] = []
    with suppress_warnings():
        for noise in NOISE_LEVELS:
            try:
                code = _model_code(subject, finding, noise)
                candidates = list(_violations(code, subject, finding, law))
            except ReproductionError as error:
                failures.append(str(error))
                continue
            for shown in candidates:
                try:
                    script = _script(code, shown, subject, finding)
                except ReproductionError as error:
                    failures.append(str(error))
                    continue
                return Reproduction(finding, script, issue_text(finding, subject, script))
    reasons = "; ".join(dict.fromkeys(failures)) or "the violation was not found again with other weights"
    raise ReproductionError(f"no script for {finding.code} {finding.law}: {reasons}")


def _script(code: ModelCode, shown: _Shown, subject: Subject, finding: Finding) -> str:
    wanted = [shown.expected.call, shown.actual.call]
    events = shown.recorder.events
    events = list(events) if shown.every_call else needed_events(events, wanted)
    writer = CallWriter(shown.recorder, events, {"expected": shown.expected, "actual": shown.actual})
    lines = writer.lines()
    limit = threshold(exact=shown.every_call)
    script = script_text(
        f"{subject.name}: {finding.law} ({finding.code}), {shown.what}", code,
        [*writer.model_lines, *writer.variables.lines], lines, limit=limit, must_differ=shown.must_differ,
    )  # fmt: skip
    count = sum(bool(line.strip()) for line in script.splitlines())
    if count > MAX_LINES:
        raise ReproductionError(f"the script has {count} lines, more than {MAX_LINES}")
    if (outcome := run_script(script)) != 1:
        raise ReproductionError(f"the script was run and does not show it ({outcome})")
    return script


def run_script(script: str) -> int | str:
    """The exit code of a script, run in this process, or its error."""
    with contextlib.redirect_stdout(io.StringIO()), suppress_warnings(), torch.random.fork_rng(devices=[]):
        try:
            exec(compile(script, "script", "exec"), {"__name__": "__main__"})
        except SystemExit as stop:
            return int(stop.code or 0)
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come
            return first_line(error)
    return 0


# ---------------------------------------------------------------- the model of the script


def _model_code(subject: Subject, finding: Finding, noise: float) -> ModelCode:
    model, whole = inner_model(subject.module), subject.original_config
    if model is None and whole is None:
        raise ReproductionError("scripts are written for models of transformers only")
    if _form(subject.name) in ("folder", "hub"):
        if noise:
            raise ReproductionError("its own weights do not show it in a script")
        return from_folder(subject.name, type(model))
    config = whole if model is None else model.config
    kind = type(model)
    if model is None or (whole is not None and (finding.call_mode == DECODER_PART or has_text_decoder(whole))):
        kind = base_model_class(whole)
        if kind is None:
            raise ReproductionError("transformers has no base model for this configuration")
    return from_config(whole or config, kind, attention=config._attn_implementation, noise=noise)


def _form(name: str) -> str:
    with contextlib.suppress(OrderproofError):
        return check_spec(name)
    return ""


def inner_model(module: Any) -> Any:
    """The transformers model inside wrappers of this package; None if there is none."""
    from transformers import PreTrainedModel

    while isinstance(module, nn.Module) and not isinstance(module, PreTrainedModel):
        module = getattr(module, "model", None) or getattr(module, "module", None)
    return module


# ---------------------------------------------------------------- the violation on that model


def _violations(code: ModelCode, subject: Subject, finding: Finding, law: Any) -> Iterator[_Shown]:
    build = partial(build_subject.build_subject, code.model, name=subject.name, load_summary="", may_modify=False)
    try:
        twin = probe_subject(code.model, partial(build, use_token_ids=True))
    except OrderproofError:
        twin = probe_subject(code.model, build)
    if isinstance(law, MeasuredLaw):
        yield from _measured(code, twin, finding, law)
    else:
        yield from _proved(code, twin, finding, law)


def _measured(code: ModelCode, twin: Subject, finding: Finding, law: MeasuredLaw) -> Iterator[_Shown]:
    if finding.call_mode == DECODER_PART:
        build_subject.attach_decoder_adapter(twin, code.model.config, lambda _: code.model)
    build = twin.build_decoder_adapter if finding.call_mode == DECODER_PART else twin.build_adapter
    assert build is not None
    adapter = build()
    assert finding.measurement is not None
    refuted = {r.description for r in finding.measurement.comparisons if r.verdict == "refuted"}
    lengths = {n for r in finding.measurement.comparisons for n in r.refuted_lengths} or {adapter.default_length}
    known = [adapter.default_length, *(n for n in measured_lengths(adapter) if n != adapter.default_length)]
    for length in [n for n in known if n in lengths] or known:
        names = [c.description for c in law.comparisons(CachedCalls(adapter).at_length(length))]
        for name in names:
            if any(text == name or text.startswith(f"{name}, at ") for text in refuted) or length != known[0]:
                yield from _comparison(code, adapter, law, name, length)


def _comparison(code: ModelCode, adapter: Any, law: MeasuredLaw, name: str, length: int) -> Iterator[_Shown]:
    recorder = CallRecorder()
    watched = watched_adapter(adapter, recorder, inner_model)
    with recorder.watch(code.model):
        calls = CachedCalls(watched).at_length(length)
        comparison = next((c for c in law.comparisons(calls) if c.description == name), None)
        if comparison is None or comparison.informational:
            return
        recorder.events.clear()
        try:
            expected, actual = comparison.run(calls)[:2]
        except Exception:  # noqa: BLE001 - third-party code: another comparison may run
            return
    shown = _places(recorder, comparison, expected, actual, every_call=law.refutation_changes_model)
    if shown is not None:
        yield shown


def _places(
    recorder: CallRecorder, comparison: Comparison, expected: Tensor, actual: Tensor, *, every_call: bool
) -> _Shown | None:
    """The vectors that differ most, in the calls that gave them."""
    if expected.shape != actual.shape or expected.dim() < 2 or not expected.is_floating_point():  # noqa: PLR2004
        return None
    least = LEAST_FACTOR * threshold(exact=every_call)
    if (relative_difference(expected, actual) > least) == comparison.expects_difference:
        return None
    calls = [event for event in recorder.events if isinstance(event, ModelCall)]
    worst = int((expected - actual).abs().flatten(0, -2).amax(-1).argmax())
    one = find_vector(calls, expected.flatten(0, -2)[worst])
    other = find_vector(calls[::-1], actual.flatten(0, -2)[worst])
    if one is None or other is None or one == other:
        return None
    what = comparison.description
    return _Shown(recorder, one, other, what, comparison.expects_difference, every_call)


def _proved(code: ModelCode, twin: Subject, finding: Finding, law: ProvedLaw) -> Iterator[_Shown]:
    there = audit_context(twin).in_call_mode(finding.call_mode or "plain")
    if isinstance(there, str):
        raise ReproductionError(there)
    there = there.for_law(law)
    for part in law.subrelations(there.batch_size):
        for output, dims in there.output_dims.items():
            search = WitnessSearch(there, part, output, dims, None)
            evidence = search.search("these")
            if evidence is None or max(evidence.float32, evidence.float64 or 0.0) < LEAST_FACTOR * FLOAT32_TOLERANCE:
                continue
            recorder = CallRecorder()
            search._first.clear()
            with recorder.watch(code.model):
                pair = search.pair(evidence.length, evidence.change, "model")
            shown = None if pair is None else _proved_places(recorder, search, evidence, pair)
            if shown is not None:
                yield shown


def _proved_places(
    recorder: CallRecorder, search: WitnessSearch, evidence: Counterexample, pair: tuple[Tensor, Tensor]
) -> _Shown | None:
    """The vectors of both runs that differ most."""
    calls = [event for event in recorder.events if isinstance(event, ModelCall)]
    expected, actual = pair
    what = evidence.change.description
    if expected.dim() > 1:
        comparison = Comparison(what, lambda _: pair)
        return _places(recorder, comparison, expected, actual, every_call=False)
    if len(calls) != 2 or search.output not in calls[0].outputs:  # noqa: PLR2004
        return None
    worst = int((expected - actual).abs().argmax())
    shape = tuple(calls[0].outputs[search.output].shape)
    index = search.law.output_index((worst,), search.dims, evidence.length, shape)[:-1]
    one, other = (OutputPlace(call, search.output, index) for call in calls)
    return _Shown(recorder, one, other, what, must_differ=False, every_call=False)
