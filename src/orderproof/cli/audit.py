"""`orderproof audit`: all checks and properties of a model, and where order enters it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import model_output_on_stderr, progress, report_console
from orderproof.cli.outputs import certificate_writer, print_written, write_outputs
from orderproof.cli.subject_argument import check_port_options, check_subject, load_subject
from orderproof.cli.watched_process import go_on_in_child, keep, noted, plan
from orderproof.subject_spec import check_length, parse_layout


def audit(
    subject: Annotated[
        str | None, typer.Argument(help=options.SUBJECT + " Default: the bundled all-MiniLM-L6-v2.")
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
    mask: options.Mask = None,
    position_ids: options.PositionIds = None,
    role: options.Role = None,
    mode: options.Mode = "eval",
    timeout: options.Timeout = 120.0,
    strict: options.Strict = False,
    against: options.Against = None,
    allow_network: options.AllowNetwork = False,
    details: options.Details = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit a model: prove, refute or measure each law of order, and list where order enters.

    Checks pass or fail; properties describe the model. The kind of the model (--as), a named law (--law) or --expect
    states what is expected. A law that is named should hold; --expect LAW=any expects nothing of it.

    \b
    Examples:
      orderproof audit                                     the bundled real model
      orderproof audit arch:llama --tiny --html report.html
      orderproof audit my_model.py:build --law causal      exit code 1 if it is not causal
      orderproof audit my_model.py:build --as decoder      all that a decoder should do
      orderproof audit my_model.py:build --as decoder --strict     exit code 3 if a law of it was not tested
      orderproof audit ./checkpoint --expect permutation=fails
      orderproof audit ./checkpoint --json - --quiet
      orderproof audit ./checkpoint --against mlx
    """
    from orderproof.report.file_output import check_writable

    check_writable(json, html, junit, sarif, markdown, certificate, source=subject)
    layout = parse_layout(
        token_axis, output_axes, together=together, mask=mask, position_ids=position_ids, mode=mode, roles=role
    )
    if against:
        check_port_options(
            subject, against, certificate=certificate, layout=layout, attention=attention, dtype=dtype, length=length
        )
    check_subject(subject, tiny=tiny, attention=attention, layout=layout, allow_network=allow_network, dtype=dtype)
    options.check_laws(law, against)
    check_length(length)
    expected = options.parse_expectations(expect)
    options.check_laws(expected if against else None, against)
    context, loaded, report, interrupted = None, None, None, False
    if crash := None if against else go_on_in_child():
        report = crash.shown_report(subject, certificate=certificate is not None)
    else:
        with progress(quiet=quiet) as show, model_output_on_stderr():
            update = noted(show)
            update(f"loading {subject or 'the bundled model'}", 0, 1)
            if against:
                from orderproof.auditing.port_audit import audit_against

                reports = audit_against(
                    subject, against, laws=law, expect=expected, seed=seed, timeout=timeout, progress=update
                )
            else:
                loaded = load_subject(
                    subject,
                    tiny=tiny,
                    attention=attention,
                    dtype=dtype,
                    seed=seed,
                    layout=layout,
                    allow_network=allow_network,
                    kind=as_kind,
                    timeout=timeout,
                )
                from orderproof.auditing.api import audit_context
                from orderproof.auditing.run import run_audit, undecided_report

                context = audit_context(loaded, length=length, seed=seed)
                plan(undecided_report(context, chosen=law, expect=expected))
                reports = run_audit(context, chosen=law, expect=expected, timeout=timeout, progress=update)
            try:
                for report in reports:
                    keep(report)
                scripted = html is not None and mode == "eval"  # a script calls the model in eval mode
                if scripted and loaded is not None and report is not None and report.violations:
                    from orderproof.reproduction import with_scripts

                    update("writing scripts of failed checks", 0, 1)
                    report = with_scripts(loaded, report)
            except KeyboardInterrupt:
                interrupted = True
        if report is None:
            raise KeyboardInterrupt
    report = report.model_copy(update={"interrupted": interrupted, "strict": strict})
    from orderproof.report import render_text, write_html, write_json, write_junit, write_markdown, write_sarif

    written = write_outputs(
        (html, partial(write_html, report)),
        (json, partial(write_json, report)),
        (junit, partial(write_junit, report)),
        (sarif, partial(write_sarif, report)),
        (markdown, partial(write_markdown, report)),
        (certificate if context else None, certificate_writer(context, report)),
    )
    if not quiet:
        console = report_console([json, html, junit, sarif, markdown, certificate])
        render_text(report, console, details=details)
        print_written(console, written)
    if interrupted:
        raise KeyboardInterrupt
    raise typer.Exit(report.exit_code)
