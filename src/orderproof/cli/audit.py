"""`orderproof audit`: which laws of order a subject obeys, and where order enters it."""

from __future__ import annotations

from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console


def audit(
    subject: Annotated[
        str | None, typer.Argument(help=options.SUBJECT + " Without one: the bundled all-MiniLM-L6-v2.")
    ] = None,
    law: options.Laws = None,
    length: options.Length = None,
    expect: options.Expect = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    markdown: options.Markdown = None,
    certificate: options.Certificate = None,
    seed: options.Seed = 0,
    tiny: options.Tiny = False,
    attention: options.Backend = None,
    token_axis: options.Axis = None,
    timeout: options.Timeout = 120.0,
    allow_network: options.Network = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit a model: prove or refute each law of order, and map where order enters.

    \b
    Examples:
      orderproof audit                                     the bundled real model
      orderproof audit arch:llama --tiny --html report.html
      orderproof audit my_model.py:build --law causal --expect causal=holds
      orderproof audit ./checkpoint --json - --quiet
    """
    from orderproof.report.destination import check

    check(json, html, junit, sarif, markdown, certificate)
    with progress(quiet=quiet) as tell:
        tell("loading", 0, 1)
        from orderproof.cli.loading import load_subject

        expected = options.expectations(expect)
        found = load_subject(
            subject, tiny=tiny, attention=attention, seed=seed, token_axis=token_axis, allow_network=allow_network
        )
        from orderproof.auditing.api import examination
        from orderproof.auditing.steps import audit_steps

        exam = examination(found, length=length, seed=seed)

        report, interrupted = None, False
        try:
            for report in audit_steps(exam, chosen=law, expect=expected, timeout=timeout, progress=tell):  # noqa: B007
                pass
        except KeyboardInterrupt:
            interrupted = True
    if report is None:
        raise KeyboardInterrupt
    report = report.model_copy(update={"interrupted": interrupted})
    from orderproof.report import render_text, write_html, write_json, write_junit, write_markdown, write_sarif

    for path, write in (
        (json, write_json), (html, write_html), (junit, write_junit), (sarif, write_sarif), (markdown, write_markdown)
    ):  # fmt: skip
        if path is not None:
            write(report, path)
    if certificate is not None:
        from orderproof.cli.certificates import write_all

        write_all(exam, report, certificate)
    if not quiet:
        console = report_console([json, html, junit, sarif, markdown, certificate])
        render_text(report, console)
        written = [path for path in (html, json, junit, sarif, markdown, certificate) if path not in (None, "-")]
        if written:
            console.print(f"written: {', '.join(str(p) for p in written)}", highlight=False)
    if interrupted:
        raise KeyboardInterrupt
    raise typer.Exit(report.exit_code)
