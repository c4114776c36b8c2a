"""`orderproof audit` without a subject: all subjects of the configuration, each in a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from orderproof import cli, forked_process
from orderproof.cli.console import progress, report_console
from orderproof.cli.gate import Gate
from orderproof.cli.handed_report import hand_over_to, report_of_text
from orderproof.cli.kept import finished, kept_reports
from orderproof.cli.outputs import ReportFiles, print_written
from orderproof.cli.project_report import Audited, exit_code, print_project, project_report
from orderproof.cli.stated_options import NO_CACHE, OF_A_RUN, options_of
from orderproof.configuration.project_file import Configuration
from orderproof.errors import UsageError
from orderproof.records.audit import EXIT_INTERRUPTED
from orderproof.signals import interrupt_on_termination

Show = Callable[[str, int, int], None]


def audit_project(command: Any, ctx: Any, configuration: Configuration) -> None:
    """Audit every subject, print what was found and write the files of the whole. Exits with the code of the worst."""
    from orderproof.report.file_output import check_writable

    options: Mapping[str, Any] = ctx.params
    files = ReportFiles.of_options(options)
    if files.certificate is not None:
        raise UsageError("expected the name of a subject with --certificate; a file has the proofs of one model")
    if options["resume"] is not None:
        raise UsageError("expected the name of a subject with --resume; a report to go on with is of one model")
    check_writable(*files.paths)
    gate = Gate(options)
    given = _given_options(command, ctx)
    found = {name: _unchanged(command, name, given, configuration) for name in configuration.subjects}
    left = [name for name, audited in found.items() if audited is None]
    with progress(quiet=options["quiet"]) as show:
        new = {each.name: each for each in _audit_all(left, [*given, "--quiet"], options["jobs"], show)}
    audited = [each for name, kept in found.items() if (each := kept or new.get(name)) is not None]
    as_found = [each.report for each in audited if each.report is not None]
    audited = [each.accepted(gate.accept) for each in audited]
    report = project_report(audited, configuration.folder.name)
    written = [] if report is None else files.write(report)
    if not options["quiet"]:
        console = report_console(files.paths)
        print_project(audited, console, details=options["details"])
        print_written(console, written)
    subjects = configuration.subjects
    code = gate.end(exit_code(audited), as_found, quiet=options["quiet"], subjects=subjects)
    if code == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    raise typer.Exit(code)


def _unchanged(command: Any, name: str, given: Sequence[str], configuration: Configuration) -> Audited | None:
    """The kept report of a subject on which nothing has changed. Raises `UsageError` for what is stated wrongly."""
    ctx = command.make_context(command.name, [name, *given])
    kept = kept_reports(ctx, configuration.folder)
    found = None if kept is None else kept.find()
    if found is None:
        return None
    report = finished(found.report, ctx)
    with contextlib.chdir(configuration.folder):
        ReportFiles.of_options(ctx.params).write(report)
    return Audited(name, report.exit_code, report, unchanged_since=found.made)


def _given_options(command: Any, ctx: Any) -> list[str]:
    """The options on the command line that are of each subject, as arguments."""
    found: list[str] = []
    for key, option in options_of(command.callback).items():
        value = ctx.params[option.parameter]
        of_run = option.is_file or key in OF_A_RUN - {NO_CACHE}
        if ctx.get_parameter_source(option.parameter).name != "COMMANDLINE" or of_run:
            continue
        if option.kind is bool:
            found.append(f"--{key}")
        else:
            found += [text for one in (value if option.repeatable else [value]) for text in (f"--{key}", str(one))]
    return found


def _audit_all(names: Sequence[str], given: Sequence[str], jobs: int, show: Show) -> list[Audited]:
    """Audit the subjects, as many at a time as there are jobs; those that an interruption leaves out are not there."""
    with tempfile.TemporaryDirectory(prefix="orderproof-") as folder:
        commands = [_Command(name, ["audit", name, *given], Path(folder, str(k))) for k, name in enumerate(names)]
        if sys.platform != "linux" or not cli.is_program or "torch" in sys.modules:
            return list(_run_here(commands, show))
        return _run_processes(commands, jobs, show)


def _run_here(commands: Sequence[_Command], show: Show) -> Iterator[Audited]:
    """One after the other in this process; an interruption ends all."""
    for done, command in enumerate(commands):
        show(f"auditing {command.name}", done, len(commands))
        yield (audited := command.run_here())
        if audited.code == EXIT_INTERRUPTED:
            return


def _run_processes(commands: Sequence[_Command], jobs: int, show: Show) -> list[Audited]:
    waiting, running, audited = list(commands), list[_Command](), dict[str, Audited]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                command = waiting.pop(0)
                names = ", ".join(each.name for each in (*running, command))
                show(f"auditing {names}", len(audited), len(commands))
                command.start()
                running.append(command)  # not before: a process that was not started cannot be interrupted
            ended, _, _ = select.select([each.end for each in running], [], [])
            for command in [each for each in running if each.end in ended]:
                running.remove(command)
                audited[command.name] = command.result()
    except KeyboardInterrupt:
        for command in running:
            command.interrupt()
        audited |= {command.name: command.result() for command in running}
        if all(each.code != EXIT_INTERRUPTED for each in audited.values()):
            audited[commands[0].name] = Audited(commands[0].name, EXIT_INTERRUPTED)
    return [audited[each.name] for each in commands if each.name in audited]


@dataclass
class _Command:
    """The audit of one subject: its command line, and where its report and its messages go."""

    name: str
    arguments: list[str]
    place: Path
    pid: int = 0
    end: int = -1  # a file that can be read when the process has ended

    def start(self) -> None:
        """Run the command in a forked process."""
        parent, library = os.getpid(), forked_process.libc()
        self.pid = forked_process.fork()
        if self.pid:
            self.end = os.pidfd_open(self.pid)
            return
        forked_process.end_with_parent(parent, library)
        interrupt_on_termination()
        messages = os.open(self._messages, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for standard in (1, 2):
            os.dup2(messages, standard)
        code = 2
        try:
            code = self._run()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # nothing of the parent may run in this process, or in that which it starts

    def run_here(self) -> Audited:
        """Run the command in this process, where none can be forked."""
        stream = io.StringIO()
        with contextlib.redirect_stderr(stream), contextlib.redirect_stdout(stream):
            code = self._run()
        self._messages.write_text(stream.getvalue(), encoding="utf-8")
        return self._audited(code)

    def result(self) -> Audited:
        """The result of the process, after its end."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.end)
        return self._audited(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))

    def interrupt(self) -> None:
        """Do in the process what Ctrl-C does; it still hands over what it found."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    def _run(self) -> int:
        before, sys.argv = sys.argv, [sys.argv[0], *self.arguments]
        hand_over_to(self._report)
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0) if not isinstance(end.code, str) else 1
        finally:
            sys.argv = before
            hand_over_to(None)
        return 0

    def _audited(self, code: int) -> Audited:
        report = report_of_text(self._report.read_text(encoding="utf-8")) if self._report.exists() else None
        said = self._messages.read_text(encoding="utf-8", errors="replace") if self._messages.exists() else ""
        lines = [line.removeprefix("orderproof: ") for line in said.splitlines() if line.strip()]
        return Audited(self.name, code, report, lines[-1] if lines else "")

    @property
    def _report(self) -> Path:
        return self.place.with_suffix(".report")

    @property
    def _messages(self) -> Path:
        return self.place.with_suffix(".messages")
