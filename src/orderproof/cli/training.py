"""`orderproof training`: the laws of a training step, a model with a batch and a loss."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from orderproof.catalogue.laws import find_training_law
from orderproof.cli import completion, options
from orderproof.cli.console import model_output_on_stderr, progress, report_console
from orderproof.cli.outputs import ReportFiles, print_written
from orderproof.cli.watched_process import go_on_in_child, keep, noted, plan
from orderproof.errors import UsageError
from orderproof.subject_spec import object_location

SUBJECT = (
    "file.py:name or package.module:name of a function that returns a model, a batch and a loss(model, batch); "
    "without a loss, the model returns one for the batch."
)
COLLATOR = (
    "A function that returns a collator and samples for it: the law of collators is decided too, and a step with None "
    "for its batch gets that of the collator."
)
ROLLOUT = (
    "The engine that generates the labelled tokens: its log-probabilities are compared with those of the loss. "
    "generate, that of transformers, or an engine of orderproof list engines."
)


def training(
    step: Annotated[str | None, typer.Argument(metavar="STEP", help=SUBJECT)] = None,
    collator: Annotated[str | None, typer.Option("--collator", metavar="file.py:name", help=COLLATOR)] = None,
    rollout: Annotated[str | None, typer.Option("--rollout", metavar="ENGINE", help=ROLLOUT)] = None,
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
    timeout: options.Timeout = 120.0,
    strict: options.Strict = False,
    details: options.Details = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit a training step: labels, pads, packed documents and micro-batches in the loss.

    \b
    Examples:
      orderproof training train.py:step
      orderproof training train.py:step --law label_alignment --json -
      orderproof training --collator data.py:samples
      orderproof training grpo.py:step --rollout generate
    """
    from orderproof.report.file_output import check_writable

    files = ReportFiles(json=json, html=html, junit=junit, sarif=sarif)
    subject = step or collator
    if subject is None:
        raise UsageError("expected a training step, file.py:step, or --collator file.py:name")
    for spec in filter(None, (step, collator)):
        check_writable(*files.paths, source=spec)
        object_location(spec)
    law = law if step else ["OP710"]
    for name in law or ():
        find_training_law(name)
    expected = options.parse_expectations(expect)
    began = time.perf_counter()
    if crash := go_on_in_child():
        report = crash.shown_report(subject, certificate=False)
    else:
        with progress(quiet=quiet) as show, model_output_on_stderr():
            update = noted(show)
            update(f"loading {subject}", 0, 1)
            from orderproof.training.audit import StepAudit
            from orderproof.training.load import load_samples, load_step
            from orderproof.training.step_inputs import StepInputs

            planned = StepAudit(law, expected, subject, seed, strict, timeout)
            loaded = load_step(step, seed=seed) if step else (None, None, None)
            collated = load_samples(collator, seed=seed) if collator else (None, ())
            plan(planned.undecided())
            for report in planned.reports(StepInputs(*(*loaded, *collated, rollout)), update):
                keep(report)
    report = report.model_copy(update={"seconds": round(time.perf_counter() - began, 3)})
    from orderproof.report import render_text

    written = files.write(report)
    if not quiet:
        console = report_console(files.paths)
        render_text(report, console, details=details)
        print_written(console, written)
    raise typer.Exit(report.exit_code)
