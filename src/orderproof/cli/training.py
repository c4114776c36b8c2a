"""`orderproof training`: the laws of a training step, a model with a batch and a loss."""

from __future__ import annotations

from typing import Annotated

import typer

from orderproof.catalogue.laws import find_training_law
from orderproof.cli import completion, options
from orderproof.cli.console import model_output_on_stderr, progress, report_console
from orderproof.cli.outputs import ReportFiles, print_written
from orderproof.subject_spec import object_location

SUBJECT = (
    "file.py:name or package.module:name of a function that returns a model, a batch and a loss(model, batch); "
    "without a loss, the model returns one for the batch."
)


def training(
    step: Annotated[str, typer.Argument(metavar="STEP", help=SUBJECT)],
    law: Annotated[
        list[str] | None,
        typer.Option(
            "--law",
            autocompletion=completion.law_names,
            help="A law (OP7xx) by name or code; repeatable. All by default.",
        ),
    ] = None,
    expect: options.Expect = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    seed: options.Seed = 0,
    strict: options.Strict = False,
    details: options.Details = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit a training step: labels, pads, packed documents and micro-batches in the loss.

    \b
    Examples:
      orderproof training train.py:step
      orderproof training train.py:step --law label_alignment --json -
    """
    from orderproof.report.file_output import check_writable

    files = ReportFiles(json=json, html=html, junit=junit, sarif=sarif)
    check_writable(*files.paths, source=step)
    object_location(step)
    for name in law or ():
        find_training_law(name)
    expected = options.parse_expectations(expect)
    with progress(quiet=quiet) as show, model_output_on_stderr():
        show(f"loading {step}", 0, 1)
        from orderproof.training import audit
        from orderproof.training.load import load_step

        model, batch, loss = load_step(step, seed=seed)
        report = audit(
            model, batch, loss, laws=law, expect=expected, name=step, seed=seed, strict=strict, progress=show
        )
    from orderproof.report import render_text

    written = files.write(report)
    if not quiet:
        console = report_console(files.paths)
        render_text(report, console, details=details)
        print_written(console, written)
    raise typer.Exit(report.exit_code)
