"""Measured laws in a forked process: what a model does there costs one law its verdict, never the report.

The child measures law after law and writes each finding into a pipe. The parent limits the time of each law. A law that
takes longer, kills the process, changes the model or leaves processes behind is undecided, with that reason, and the
next law is measured in a new child, on the model as it was.
"""

from __future__ import annotations

import os
import select
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from orderproof import forked_process
from orderproof.adapter import ModelAdapter
from orderproof.auditing.decide.changed_weights import WeightValues, with_changed_weights
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.explain.findings import finding_of, undecide
from orderproof.auditing.search.lengths import UNSEEN, Watch
from orderproof.cast_on_use import is_large
from orderproof.errors import failure_reason
from orderproof.laws.law import Law
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.models import Subject
from orderproof.records.audit import Expectation, Finding, Scope, Verdict
from orderproof.time_limit import TimeAllowed

LAW_TIMEOUT = 120.0  # [s] for one law
EACH_LAW = TimeAllowed(LAW_TIMEOUT)
DECODER_PART = "decoder"
_BEGUN, _NEXT, _LAST, _FAILED = b">", b".", b"!", b"?"  # a law; a finding; one after which the model changed; an error
_COMPARED = b"#"  # the comparisons that are done, and those that are planned


@dataclass(frozen=True)
class MeasurementJob:
    """One law to be measured on one part of a subject."""

    law: MeasuredLaw
    part: str  # "" for the model itself
    kind: str
    build_adapter: Callable[[], ModelAdapter] | None


@dataclass
class MeasurementRun:
    """Laws to be measured on one subject."""

    subject: Subject
    laws: Sequence[MeasuredLaw]
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    seed: int = 0
    allowed: TimeAllowed = EACH_LAW
    length: int | None = None  # [tokens] of the default call; None for that of the adapter
    watch: Watch = UNSEEN
    cut: set[str] = field(default_factory=set)  # the laws that have no finding: not reached, too long, or a crash

    @cached_property
    def jobs(self) -> tuple[MeasurementJob, ...]:
        """Each law for the model, then each law for its decoder if it has one, and those of further sequences."""
        parts = [("", self.subject.model_kind, self.subject.build_adapter)]
        if self.subject.build_decoder_adapter is not None:
            parts.append((DECODER_PART, "causal_lm", self.subject.build_decoder_adapter))
        jobs = [MeasurementJob(law, part, kind, build) for part, kind, build in parts for law in self.laws]
        laws = [law for law in self.laws if law.sequence_part]
        for name, other in self.subject.other_sequences.items():
            jobs += [
                MeasurementJob(law, law.call_mode_of_sequence(name), other.model_kind, other.build_adapter)
                for law in laws
            ]
        return tuple(jobs)

    def findings(self) -> Iterator[Finding]:
        """One finding per job, in order."""
        if self.subject.build_adapter is None:
            yield from (
                self.finding_without_result(job, "not_applicable", "how to call it is not known") for job in self.jobs
            )
        elif forked_process.can_fork():
            yield from self._run_forked()
        else:
            yield from self.run_in_process(0, self.watch)

    def finding_without_result(self, job: MeasurementJob, verdict: Verdict, reason: str) -> Finding:
        """The finding of a law that could not be measured."""
        expected = self.expect.get(job.law.name) or job.law.expected(job.kind)
        scope = Scope(length=self.length or self.subject.default_length, weights="these")
        return finding_of(job.law, verdict, reason, expected=expected, scope=scope, call_mode=job.part)

    def run_in_process(self, start: int, watch: Watch) -> Iterator[Finding]:
        """The findings of the jobs from this index on, measured in this process."""
        calls_of: dict[str, CachedCalls | str] = {}
        for done, job in enumerate(self.jobs[start:], start):
            if self.allowed.is_spent:
                yield from self._not_reached(done)
                return
            if job.part not in calls_of:
                calls_of[job.part] = self._calls(job)
            calls = calls_of[job.part]
            if isinstance(calls, str):
                yield self.finding_without_result(job, "undecided", calls)
                continue
            expect = self.expect.get(job.law.name)
            finding = measure_law(calls.adapter, job.law, calls, kind=job.kind, expect=expect, watch=watch)
            calls.free_models()
            yield self._with_length_note(finding.model_copy(update={"call_mode": job.part}), job, calls)

    def _with_length_note(self, finding: Finding, job: MeasurementJob, calls: CachedCalls) -> Finding:
        """The finding with a line on why the chosen length was not used, if it was not."""
        why = job.law.ignores_length if calls.adapter.has_token_axis else "its number of tokens is fixed"
        if self.length is None or not why:
            return finding
        note = f"not measured at the chosen {self.length} tokens: {why}"
        return finding.model_copy(update={"scope": finding.scope.model_copy(update={"assumptions": (note,)})})

    def _calls(self, job: MeasurementJob) -> CachedCalls | str:
        """The calls of the job's model, or why its adapter could not be built."""
        assert job.build_adapter is not None
        try:
            adapter = job.build_adapter()
            chosen = self.length if adapter.has_token_axis else None
            calls = CachedCalls(adapter if chosen is None else adapter.at_length(chosen), self.seed)
            calls.remember_first_state()
            _ = calls.adapter.supported_inputs  # so that the copies that laws make of it know
        except Exception as error:  # noqa: BLE001 - third-party code: building may fail in any way
            return failure_reason(error)
        return calls

    def _run_forked(self) -> Iterator[Finding]:
        if is_large(self.subject.module):
            forked_process.return_free_memory()
        with tempfile.TemporaryDirectory(prefix="orderproof-") as folder:  # a child that is killed removes no files
            yield from self._run_in_children(folder)

    def _run_in_children(self, folder: str) -> Iterator[Finding]:
        done = 0
        while done < len(self.jobs):
            if self.allowed.is_spent:
                yield from self._not_reached(done)
                return
            child = _MeasurementProcess(self, done, folder)
            try:
                for job in self.jobs[done:]:
                    began = time.monotonic()
                    message = child.next_finding(self.allowed)
                    done += 1
                    if isinstance(message, str):
                        self.cut.add(job.law.name)
                        finding = self.finding_without_result(job, "undecided", message)
                        yield finding.model_copy(update={"seconds": time.monotonic() - began})
                        break
                    finding, is_last = message
                    yield finding
                    if is_last or self.allowed.is_spent:
                        break
            finally:
                child.stop()

    def _not_reached(self, start: int) -> Iterator[Finding]:
        """The findings of the jobs from this index on, which the budget leaves out."""
        self.cut.update(job.law.name for job in self.jobs[start:])
        reason = self.allowed.not_reached
        yield from (self.finding_without_result(job, "undecided", reason) for job in self.jobs[start:])


class _MeasurementProcess(forked_process.ForkedProcess):
    """A forked process that measures laws from a first job on, with its temporary files in a folder."""

    def __init__(self, run: MeasurementRun, start: int, folder: str) -> None:
        self._read, write = os.pipe()
        self._buffer, self._run = b"", run

        def work() -> None:
            os.close(self._read)
            torch.set_num_threads(1)
            tempfile.tempdir = folder
            try:
                _measure_into_pipe(run, start, write)
            except BaseException as error:
                os.write(write, _FAILED + f"{failure_reason(error)}\n".encode())
                raise

        super().__init__(work)
        os.close(write)

    def next_finding(self, allowed: TimeAllowed) -> tuple[Finding, bool] | str:
        """The next finding, and whether the one after it needs a new process; or why there is none."""
        limit = allowed.for_next()
        end = None if limit is None else time.monotonic() + limit
        while True:
            while b"\n" not in self._buffer:
                wait = None if end is None else max(end - time.monotonic(), 0)
                ready, _, _ = select.select([self._read], [], [], wait)
                if not ready:
                    return allowed.not_done
                more = os.read(self._read, 1 << 16)
                if not more:
                    return f"its process {forked_process.exit_description(self.wait())}"
                self._buffer += more
            line, _, self._buffer = self._buffer.partition(b"\n")
            kind, text = line[:1], line[1:].decode()
            if kind == _FAILED:
                return text
            if kind == _BEGUN:
                self._run.watch.begin(next(law for law in self._run.laws if law.name == text))
            elif kind == _COMPARED:
                self._run.watch.compared(*map(int, text.split()))
            else:
                return Finding.model_validate_json(text), kind == _LAST

    def stop(self) -> None:
        """End the process and all processes that it started."""
        os.close(self._read)
        super().stop()


def _measure_into_pipe(run: MeasurementRun, start: int, pipe: int) -> None:
    """In the child: write findings into the pipe, and stop after the first that leaves the model changed."""
    before = WeightValues(run.subject.module)
    laws = {law.name: law for law in run.laws}
    run.allowed = TimeAllowed()  # the parent counts the time
    for finding in run.run_in_process(start, _PipeWatch(pipe)):
        left = forked_process.kill_tree(os.getpid(), itself=False) if forked_process.has_children() else 0
        reason = f"it left {left} process{'es' * (left > 1)} behind" if left else ""
        changes = laws[finding.law].refutation_changes_model and finding.verdict == "refuted"
        changed = [] if reason or changes else before.changed()
        is_last = bool(reason or changed) or changes
        final = undecide(finding, reason) if reason else with_changed_weights(finding, changed, run.subject)
        _write(pipe, (_LAST if is_last else _NEXT) + final.model_dump_json().encode() + b"\n")
        if is_last:
            return


class _PipeWatch(Watch):
    """In the child: the progress goes into the pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def begin(self, law: Law) -> None:
        """Name a law that applies."""
        _write(self._pipe, _BEGUN + f"{law.name}\n".encode())

    def compared(self, done: int, planned: int) -> None:
        """Count its comparisons."""
        _write(self._pipe, _COMPARED + f"{done} {planned}\n".encode())


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]
