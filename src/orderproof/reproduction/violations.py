"""Find a violation again on the model that a script builds: two vectors of recorded calls that should agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.sandbox import DECODER_PART
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.diagnosis.counterexample import Counterexample
from orderproof.errors import ReproductionError
from orderproof.laws import ProvedLaw
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw
from orderproof.laws.measured.lengths import measured_lengths
from orderproof.models import Subject
from orderproof.models.hf import build_subject
from orderproof.models.hf.probe import probe_subject
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Finding
from orderproof.reproduction.call_code import OutputPlace, find_vector
from orderproof.reproduction.call_recorder import CallRecorder, ModelCall, watched_adapter
from orderproof.reproduction.model_code import ModelCode
from orderproof.reproduction.script import threshold
from orderproof.tolerances import FLOAT32_TOLERANCE

LEAST_FACTOR = 3  # a difference is this many thresholds, so that other versions of torch see it too


@dataclass(frozen=True)
class ShownViolation:
    """Two vectors of recorded calls."""

    recorder: CallRecorder
    expected: OutputPlace
    actual: OutputPlace
    what: str
    must_differ: bool
    every_call: bool  # what earlier calls leave matters


def inner_model(module: Any) -> Any:
    """The transformers model inside wrappers of this package; None if there is none."""
    from transformers import PreTrainedModel

    while isinstance(module, nn.Module) and not isinstance(module, PreTrainedModel):
        module = getattr(module, "model", None) or getattr(module, "module", None)
    return module


def violations(code: ModelCode, subject: Subject, finding: Finding, law: Any) -> Iterator[ShownViolation]:
    """The violations of the law by the model of the script, the shortest calls first."""
    build = partial(build_subject.build_subject, code.model, name=subject.name, load_summary="", may_modify=False)
    twin = probe_subject(code.model, build)
    if isinstance(law, MeasuredLaw):
        yield from _measured(code, twin, finding, law)
    else:
        yield from _proved(code, twin, finding, law)


def _measured(code: ModelCode, twin: Subject, finding: Finding, law: MeasuredLaw) -> Iterator[ShownViolation]:
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


def _watched_model(code: ModelCode, module: Any) -> tuple[nn.Module, tuple[str, ...]]:
    """The part of the script's model that is called, and the lines that get it."""
    encoder = code.model.get_encoder() if code.model.config.is_encoder_decoder else None
    if encoder is not None and any(part is encoder for part in module.modules()):
        if not any(part is code.model for part in module.modules()):
            return encoder, ("encoder = model.get_encoder()",)
    return code.model, ()


def _comparison(code: ModelCode, adapter: Any, law: MeasuredLaw, name: str, length: int) -> Iterator[ShownViolation]:
    recorder = CallRecorder()
    watched = watched_adapter(adapter, recorder, inner_model)
    with recorder.watch(*_watched_model(code, adapter.module)):
        calls = CachedCalls(watched).at_length(length)
        comparison = next((c for c in law.comparisons(calls) if c.description == name), None)
        if comparison is None or comparison.informational:
            return
        if law.refutation_changes_model:
            recorder.events.clear()  # otherwise calls that are made once for several comparisons are among them
        try:
            expected, actual = comparison.run(calls)[:2]
        except Exception:  # noqa: BLE001 - third-party code: another comparison may run
            return
    shown = _places(recorder, comparison, expected, actual, every_call=law.refutation_changes_model)
    if shown is not None:
        yield shown


def _places(
    recorder: CallRecorder, comparison: Comparison, expected: Tensor, actual: Tensor, *, every_call: bool
) -> ShownViolation | None:
    """The vectors that differ most, in the calls that gave them."""
    if expected.shape != actual.shape or expected.dim() < 2 or not expected.is_floating_point():
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
    return ShownViolation(recorder, one, other, what, comparison.expects_difference, every_call)


def _proved(code: ModelCode, twin: Subject, finding: Finding, law: ProvedLaw) -> Iterator[ShownViolation]:
    there = audit_context(twin).in_call_mode(finding.call_mode or "plain")
    if isinstance(there, str):
        raise ReproductionError(there)
    law = law.in_call_mode(finding.call_mode or "plain")
    there = there.for_law(law)
    for part in law.subrelations(there.batch_size):
        for output, dims in there.output_dims.items():
            search = WitnessSearch(there, part, output, dims, None)
            evidence = search.search("these")
            if evidence is None or max(evidence.float32, evidence.float64 or 0.0) < LEAST_FACTOR * FLOAT32_TOLERANCE:
                continue
            recorder = CallRecorder()
            search.forget_runs()
            with recorder.watch(*_watched_model(code, there.subject.module)):
                pair = search.pair(evidence.length, evidence.change, "model")
            shown = None if pair is None else _proved_places(recorder, search, evidence, pair)
            if shown is not None:
                yield shown


def _proved_places(
    recorder: CallRecorder, search: WitnessSearch, evidence: Counterexample, pair: tuple[Tensor, Tensor]
) -> ShownViolation | None:
    """The vectors of both runs that differ most."""
    calls = [event for event in recorder.events if isinstance(event, ModelCall)]
    expected, actual = pair
    what = evidence.change.description
    if expected.dim() > 1:
        comparison = Comparison(what, lambda _: pair)
        return _places(recorder, comparison, expected, actual, every_call=False)
    if len(calls) != 2 or search.output not in calls[0].outputs:
        return None
    worst = int((expected - actual).abs().argmax())
    shape = tuple(calls[0].outputs[search.output].shape)
    index = search.law.output_index((worst,), search.dims, evidence.length, shape)[:-1]
    one, other = (OutputPlace(call, search.output, index) for call in calls)
    return ShownViolation(recorder, one, other, what, must_differ=False, every_call=False)
