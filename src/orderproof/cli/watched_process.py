"""A command in a forked process that this one watches: a model that ends it costs laws their verdict, not the report.

The child does the whole command, on the streams of the parent. It writes into a pipe what it does, and the report so
far. The parent forwards signals and ends as the child ends. If the child ends without having said so, by a signal or
`os._exit`, the parent has a `Crash`, and writes the report in its place.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from orderproof import cli, forked_process
from orderproof.cli.console import restore_terminal
from orderproof.errors import SubjectError
from orderproof.records.audit import Report
from orderproof.report.phrases import escape_control_characters
from orderproof.signals import ENDING, interrupt_on_termination

Update = Callable[[str, int, int], None]

_STAGE, _PLAN, _REPORT, _END = b"s", b"p", b"r", b"e"  # the first letter of a line in the pipe
_parent_pipe: list[tuple[int, BinaryIO]] = []  # in the child: its process, and the pipe to the parent


@dataclass(frozen=True)
class Crash:
    """How the process of a command ended that did not end as a command does."""

    reason: str
    report: Report | None  # None before the model is loaded

    def shown_report(self, subject: str | None, *, certificate: bool) -> Report:
        """The report, after a line on standard error. Raises `SubjectError` if there is none."""
        if self.report is None:
            raise SubjectError(f"{subject or 'the bundled model'}: it cannot be audited: {self.reason}")
        written = "; no certificates were written" * certificate
        line = escape_control_characters(f"{self.reason}; the laws that are left are undecided{written}")
        sys.stderr.write(f"orderproof: {line}\n")
        return self.report


def go_on_in_child() -> Crash | None:
    """Fork, and go on in the child, where this returns None; the parent ends with the child, or gets its crash.

    Without a child, this also returns None: on other systems than Linux, where another program runs a command, and
    after an import of torch, whose threads a forked process does not have.
    """
    if sys.platform != "linux" or not cli.is_program or "torch" in sys.modules:
        return None
    read, write = os.pipe()
    parent, library = os.getpid(), forked_process.libc()
    forked_process.adopt_orphans(library)
    child = forked_process.fork()
    if child:
        os.close(write)
        return _Watch(child, read).crash()
    os.close(read)
    forked_process.end_with_parent(parent, library)
    interrupt_on_termination()
    _parent_pipe.append((os.getpid(), os.fdopen(write, "wb")))
    return None


def noted(show: Update) -> Update:
    """A function that shows progress, and sends it to the parent."""

    def update(text: str, done: int, total: int) -> None:
        _send(_STAGE, json.dumps(text))
        show(text, done, total)

    return update


def plan(undecided: Report) -> None:
    """Send the parent the report for the case that no law is reached."""
    if _parent_pipe:
        _send(_PLAN, undecided.model_dump_json())


def keep(report: Report) -> None:
    """Send the parent the report so far."""
    if _parent_pipe:
        _send(_REPORT, report.model_dump_json())


def send_end() -> None:
    """Say to the parent that the command ends by itself."""
    _send(_END, "")


def _send(kind: bytes, text: str) -> None:
    for process, pipe in _parent_pipe:
        if os.getpid() != process:
            os._exit(0)  # the model forked, and this is its child
        pipe.write(kind + text.encode() + b"\n")
        pipe.flush()


@dataclass
class _Watch:
    """The parent: what the child has sent, and its end."""

    child: int
    pipe: int
    received: dict[bytes, bytes] = field(default_factory=dict)  # the last line of each kind

    def crash(self) -> Crash:
        """The crash of the child. Ends this process if the child ends as a command does."""
        with _signals_forwarded(self.child):
            self._read_until_the_end()
            _, status = os.waitpid(self.child, 0)
        if _END in self.received:
            raise SystemExit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
        forked_process.kill_tree(os.getpid(), itself=False)
        restore_terminal()
        stage = json.loads(self.received.get(_STAGE, b'"starting"'))
        reason = f'the process {forked_process.exit_description(status)} during "{stage}"'
        return Crash(reason, self._report(reason))

    def _read_until_the_end(self) -> None:
        """Read what the child sends; a process that it started may keep the pipe open."""
        end = os.pidfd_open(self.child)
        left = b""
        while True:
            ready, _, _ = select.select([self.pipe, end], [], [])
            if self.pipe not in ready:
                break
            part = os.read(self.pipe, 1 << 16)
            *lines, left = (left + part).split(b"\n")
            self.received |= {line[:1]: line[1:] for line in lines}
            if not part:
                break
        os.close(end)
        os.close(self.pipe)

    def _report(self, reason: str) -> Report | None:
        """The report so far, with the laws that were not reached."""
        if _PLAN not in self.received:
            return None
        planned = Report.model_validate_json(self.received[_PLAN])
        if _REPORT in self.received:
            last = Report.model_validate_json(self.received[_REPORT])
        else:
            last = planned.model_copy(update={"findings": ()})
        return last.model_copy(update={"notes": (*last.notes, reason)}).with_undecided(planned, reason)


@contextmanager
def _signals_forwarded(child: int) -> Iterator[None]:
    """Give the child each signal that ends or suspends this process: it is in another session, where no terminal is."""

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    def suspend(_number: int, _frame: object) -> None:
        os.kill(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(child, signal.SIGCONT)

    handlers = dict.fromkeys(ENDING, forward) | {signal.SIGTSTP: suspend}
    heard = {n: handler for n, handler in handlers.items() if signal.getsignal(n) is not signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in heard.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
