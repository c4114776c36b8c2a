"""Measured laws in a process of their own: what a model does there costs one law its verdict, never the report.

A forked child measures law after law and writes each finding into a pipe. The parent gives every law its time.
A law that takes longer, kills the process, changes the model or leaves processes behind is undecided, with that
reason, and the next is measured in a fresh child, on the model as it was.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from orderproof.auditing import processes
from orderproof.auditing.measure import measure_law
from orderproof.auditing.verdict import is_met
from orderproof.driver import Driver
from orderproof.errors import OrderproofError
from orderproof.laws.measured import Bench, MeasuredLaw
from orderproof.prover.capture import first_line
from orderproof.prover.run import difference
from orderproof.record import Expectation, Finding, Scope, Verdict
from orderproof.subjects import Subject

LIMIT = 120.0  # [s] for one law
DECODER = "decoder"
_SAME = 1e-6  # relative: how far the usual call may move and the model still be the one it was


@dataclass(frozen=True)
class Job:
    """One law to be measured on one part of a subject."""

    law: MeasuredLaw
    part: str  # "" for the model itself
    kind: str
    driver: Callable[[], Driver] | None


@dataclass
class Measuring:
    """Laws to be measured on one subject."""

    subject: Subject
    laws: Sequence[MeasuredLaw]
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    seed: int = 0
    limit: float | None = LIMIT  # [s] for one law

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """What there is to do: every law of the model, then of its decoder where it has one."""
        main = [Job(law, "", self.subject.kind, self.subject.driver) for law in self.laws]
        if self.subject.decoder is None:
            return tuple(main)
        return (*main, *(Job(law, DECODER, "causal_lm", self.subject.decoder) for law in self.laws))

    def findings(self) -> Iterator[Finding]:
        """One finding a job, in order."""
        if self.subject.driver is None:
            yield from (self.lost(job, "not_applicable", "how to call it is not known") for job in self.jobs)
        elif processes.can_fork():
            yield from self._apart()
        else:
            yield from self.here(0)

    def lost(self, job: Job, verdict: Verdict, reason: str) -> Finding:
        """The finding of a law that could not be measured."""
        law = job.law
        expected = self.expect.get(law.name) or law.expected(job.kind)
        return Finding(
            code=law.code, law=law.name, statement=law.statement, verdict=verdict, expected=expected, setting=job.part,
            met=is_met(verdict, expected), scope=Scope(length=self.subject.length, weights="these"), reason=reason,
        )  # fmt: skip

    def here(self, start: int) -> Iterator[Finding]:
        """The findings from a job on, in this process."""
        benches: dict[str, Bench | str] = {}
        for job in self.jobs[start:]:
            if job.part not in benches:
                benches[job.part] = self._bench(job)
            bench = benches[job.part]
            if isinstance(bench, str):
                yield self.lost(job, "undecided", bench)
                continue
            expect = self.expect.get(job.law.name)
            found = measure_law(bench.driver, job.law, bench, kind=job.kind, expect=expect)
            yield found.model_copy(update={"setting": job.part})

    def _bench(self, job: Job) -> Bench | str:
        assert job.driver is not None
        try:
            return Bench(job.driver(), self.seed)
        except Exception as error:  # noqa: BLE001 - the model is not ours: anything may come
            return str(error) if isinstance(error, OrderproofError) else f"{type(error).__name__}: {first_line(error)}"

    def _apart(self) -> Iterator[Finding]:
        done = 0
        while done < len(self.jobs):
            child = _Child(self, done)
            try:
                for job in self.jobs[done:]:
                    began = time.monotonic()
                    line = child.line(self.limit)
                    done += 1
                    if isinstance(line, str):
                        reason = line
                        found = self.lost(job, "undecided", reason)
                        yield found.model_copy(update={"seconds": time.monotonic() - began})
                        break
                    finding, fresh = line
                    yield finding
                    if fresh:
                        break
            finally:
                child.stop()


class _Child:
    """A forked process that measures laws from a first one on."""

    def __init__(self, measuring: Measuring, start: int) -> None:
        self.read, write = os.pipe()
        parent, library = os.getpid(), processes.library()
        self.kept = b""
        self.pid = processes.fork()
        if self.pid:
            os.close(write)
            return
        code = 70
        try:
            os.close(self.read)
            processes.confine(parent, library)
            torch.set_num_threads(1)
            _work(measuring, start, write)
            code = 0
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run in the child
            with contextlib.suppress(BaseException):
                os.write(write, f"?{type(error).__name__}: {first_line(error)}\n".encode())
        finally:
            os._exit(code)

    def line(self, limit: float | None) -> tuple[Finding, bool] | str:
        """The next finding, and whether the one after it needs a fresh process; or why there is none."""
        until = math.inf if limit is None else time.monotonic() + limit
        while b"\n" not in self.kept:
            left = None if limit is None else max(until - time.monotonic(), 0)
            ready, _, _ = select.select([self.read], [], [], left)
            if not ready:
                return f"not done after {limit:g} s"
            more = os.read(self.read, 1 << 16)
            if not more:
                return self._died()
            self.kept += more
        line, _, self.kept = self.kept.partition(b"\n")
        if line[:1] == b"?":
            return line[1:].decode()
        return Finding.model_validate_json(line[1:]), line[:1] == b"!"

    def _died(self) -> str:
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
            return f"its process was ended by {name}"
        return f"its process ended with exit code {os.waitstatus_to_exitcode(status)}"

    def stop(self) -> None:
        """End it with all that it started."""
        os.close(self.read)
        if self.pid:
            processes.end(self.pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


def _work(measuring: Measuring, start: int, pipe: int) -> None:
    """In the child: findings into the pipe, `!` before those after which the model is no longer the same."""
    assert measuring.subject.driver is not None
    before = _values(measuring.subject)
    for made in measuring.here(start):
        finding = made
        left = processes.end(os.getpid(), itself=False)
        reason = f"it left {left} process{'es' * (left > 1)} behind" if left else ""
        remembers = finding.law == "stateless" and finding.verdict == "refuted"  # which is what the law found
        if not reason and not remembers and not _same(before, measuring.subject):
            reason = "the model changed its own weights while the law was measured"
        if reason:
            lost = {"verdict": "undecided", "reason": reason, "met": is_met("undecided", finding.expected)}
            finding = finding.model_copy(update=lost)
        spoilt = bool(reason) or remembers
        data = (b"!" if spoilt else b".") + finding.model_dump_json().encode() + b"\n"
        while data:
            data = data[os.write(pipe, data) :]
        if spoilt:
            return


def _values(subject: Subject) -> dict[str, Tensor]:
    """Sums of its weights, and of its buffers by their shapes, that another value would move: tables may grow."""
    module = subject.module
    return {
        f"{name} {list(x.shape)}": x.detach().double().abs().sum() if x.is_floating_point() else x.sum()
        for name, x in (*module.named_parameters(), *module.named_buffers())
        if x.device.type != "meta"
    }


def _same(before: dict[str, Tensor], subject: Subject) -> bool:
    after = _values(subject)
    return all(difference(before[k], after[k]) <= _SAME for k in before if k in after)
