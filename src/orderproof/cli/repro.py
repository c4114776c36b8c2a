"""`orderproof repro`: a script without orderproof that shows a failed check, and the text of an issue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import model_output_on_stderr, progress
from orderproof.cli.subject_argument import check_subject, load_subject
from orderproof.errors import UsageError
from orderproof.subject_spec import ARCH_PREFIX, Layout

ISSUE = "Also write the text of an issue: versions, configuration, trials, first difference, severity and the script."
SCRIPT = "Write the script to a file; - for standard output."


def repro(
    law: Annotated[str, typer.Argument(metavar="LAW", help="The failed check, by code or name: OP402.")],
    subject: Annotated[str, typer.Argument(help=options.SUBJECT + " An architecture is built small.")],
    script: Annotated[str, typer.Option("--script", metavar="PATH", help=SCRIPT)] = "-",
    issue: Annotated[Path | None, typer.Option("--issue", metavar="PATH", help=ISSUE)] = None,
    length: options.Length = None,
    seed: options.Seed = 0,
    attention: options.AttentionBackend = None,
    timeout: options.Timeout = 120.0,
    allow_network: options.AllowNetwork = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a script of at most 25 lines that shows a failed check without orderproof.

    The script builds the model with the library alone, makes the calls that should agree, and prints the expected and
    the actual values. It exits with 1 if the defect is there and with 0 if it is not. It is run once before it is
    written. Scripts are written for models of transformers.

    \b
    Examples:
      orderproof repro chunked_prefill arch:mamba
      orderproof repro OP202 arch:convbert --script convbert.py --issue convbert.md
    """
    from orderproof.report.file_output import check_writable, write_file

    check_writable(script, issue, source=subject)
    tiny = subject.startswith(ARCH_PREFIX)
    check_subject(subject, tiny=tiny, attention=attention, layout=Layout(), allow_network=allow_network)
    options.check_laws([law])
    with progress(quiet=quiet) as update, model_output_on_stderr():
        update(f"loading {subject}", 0, 1)
        loaded = load_subject(
            subject, tiny=tiny, attention=attention, seed=seed, layout=Layout(), allow_network=allow_network,
            timeout=timeout,
        )  # fmt: skip
        from orderproof.auditing import audit
        from orderproof.reproduction import reproduce

        report = audit(loaded, laws=[law], length=length, seed=seed, timeout=timeout, progress=update)
        failed = next((f for f in report.findings if f.outcome == "fail"), None)
        if failed is None:
            shown = ", ".join(f"{f.code} {f.law}: {f.verdict}" for f in report.findings)
            raise UsageError(f"expected a check that fails on {subject}; {shown}")
        made = reproduce(loaded, failed)
    write_file(made.script.encode(), script)
    if issue is not None:
        write_file(made.issue.encode(), issue)
    if not quiet and script != "-":
        typer.echo(f"written: {script}")
    if not quiet and issue is not None:
        typer.echo(f"written: {issue}", err=script == "-")
