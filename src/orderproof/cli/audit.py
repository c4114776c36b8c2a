"""`orderproof audit`: all checks and properties of a model, and where order enters it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import completion, options
from orderproof.cli.audit_run import AuditRun
from orderproof.cli.console import report_console
from orderproof.cli.gate import Gate
from orderproof.cli.handed_report import hand_over
from orderproof.cli.kept import Determined, finished, kept_reports, report_before, with_accepted_left
from orderproof.cli.outputs import ReportFiles, print_written
from orderproof.subject_spec import parse_layout
from orderproof.time_limit import TimeAllowed


def audit(
    ctx: typer.Context,
    subject: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.subjects,
            help=options.SUBJECT
            + " Default: the subjects of the configuration; without one the bundled all-MiniLM-L6-v2.",
        ),
    ] = None,
    law: options.Laws = None,
    length: options.Length = None,
    as_kind: options.Kind = None,
    expect: options.Expect = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    markdown: options.Markdown = None,
    certificate: options.Certificate = None,
    seed: options.Seed = 0,
    tiny: options.Tiny = False,
    attention: options.AttentionBackend = None,
    dtype: options.Dtype = None,
    token_axis: options.Axis = None,
    output_axes: options.OutputAxes = None,
    together: options.Together = False,
    role: options.Role = None,
    shape: options.Shape = None,
    example: options.Example = None,
    mode: options.Mode = "eval",
    timeout: options.Timeout = 120.0,
    budget: options.Budget = None,
    resume: options.Resume = None,
    strict: options.Strict = False,
    fast: options.Fast = False,
    against: options.Against = None,
    engine_python: options.EnginePython = None,
    allow_network: options.AllowNetwork = False,
    jax_python: options.JaxPython = None,
    details: options.Details = False,
    quiet: options.Quiet = False,
    baseline: options.BaselineFile = None,
    write_baseline: options.WriteBaseline = None,
    jobs: options.Jobs = 1,
    no_cache: options.NoCache = False,
    watch: options.Watch = False,
) -> None:
    """Audit a model: prove, refute or measure each law of order, and list where order enters.

    SUBJECT may be a name in the configuration of the project (orderproof.toml, or [tool.orderproof] in
    pyproject.toml; orderproof init config writes one). Without SUBJECT all subjects of the configuration are audited.

    Checks pass or fail; properties describe the model. The kind of the model (--as), a named law (--law) or --expect
    states what is expected. A law that is named should hold; --expect LAW=any expects nothing of it.

    \b
    Examples:
      orderproof audit                                     every subject of the configuration
      orderproof audit decoder                             one of them; its options are in the configuration
      orderproof audit arch:llama --tiny --html report.html
      orderproof audit my_model.py:build --law causal      exit code 1 if it is not causal
      orderproof audit my_model.py:build --as decoder      all that a decoder should do
      orderproof audit my_model.py:build --as decoder --strict     exit code 3 if a law of it was not tested
      orderproof audit my_model.py:build --as decoder --fast       what is proved; a commit hook
      orderproof audit my_model.py:build --as decoder --watch      again after each change of a file
      orderproof audit --baseline order_baseline.toml              accepted findings, each with a reason and an end
      orderproof audit ./checkpoint --expect permutation=fails
      orderproof audit ./checkpoint --json - --quiet
      orderproof audit ./checkpoint --budget 10min --json report.json    what finds most first; not all may fit
      orderproof audit ./checkpoint --resume report.json           the laws that are left
      orderproof audit ./checkpoint --against mlx
      orderproof audit ./checkpoint --against vllm@0.31.0,vllm@0.32.0    what changed from one version to another
    """
    from orderproof.report.file_output import check_writable

    del jax_python  # its callback names it
    del watch  # `ConfiguredCommand` runs the command again
    against = options.with_interpreter(against, engine_python)
    files = ReportFiles(json, html, junit, sarif, markdown, certificate)
    check_writable(*files.paths, source=subject)
    layout = parse_layout(
        token_axis, output_axes, together=together, mode=mode, roles=role, shapes=shape, example=example
    )
    expected = options.parse_expectations(expect)
    allowed = TimeAllowed(timeout, None if budget is None else options.parse_duration(budget))
    determined = Determined.of(ctx, Path.cwd())
    run = AuditRun(
        subject, layout, law, expected, length, seed, tiny, attention, as_kind, allowed, against, allow_network, fast,
        dtype, determined, with_scripts=html is not None, may_be_resumed=json is not None and not against,
        before=report_before(resume, determined),
    )  # fmt: skip
    run.check(certificate=certificate)
    gate = Gate(ctx.params)
    kept = kept_reports(ctx, Path.cwd())
    found = None if kept is None else kept.find()
    report = found.report if found is not None else run.report(kept, quiet=quiet, certificate=certificate)
    as_found = finished(report, ctx, interrupted=run.interrupted)
    hand_over(as_found)
    report = with_accepted_left(gate.accept(as_found), as_found)
    from orderproof.report import render_text

    written = files.write(report, run.context)
    if not quiet:
        console = report_console(files.paths)
        if found is not None:
            console.print(f"unchanged since {found.made}; --no-cache audits it again", highlight=False)
        render_text(report, console, details=details)
        print_written(console, written)
    if run.interrupted:
        raise KeyboardInterrupt
    raise typer.Exit(gate.end(report.exit_code, [as_found], quiet=quiet))
