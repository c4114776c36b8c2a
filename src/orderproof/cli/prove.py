"""`orderproof prove`: one law with its proof, witness or measurement."""

from __future__ import annotations

import time
from typing import Annotated, Literal, NoReturn

import typer

from orderproof.catalogue.laws import proved_laws
from orderproof.cli import completion, options
from orderproof.cli.console import model_output_on_stderr, progress, report_console
from orderproof.cli.outputs import ReportFiles, print_written
from orderproof.cli.subject_argument import check_subject, load_subject
from orderproof.cli.watched_process import go_on_in_child, keep, noted, plan
from orderproof.errors import UsageError
from orderproof.subject_spec import parse_layout


def prove(
    subject: Annotated[str, typer.Argument(autocompletion=completion.subjects, help=options.SUBJECT)],
    laws: Annotated[
        list[str] | None,
        typer.Option(
            "--law",
            autocompletion=completion.law_names,
            help="The law, by name or code. Without it the laws that can be proved are listed.",
        ),
    ] = None,
    length: options.Length = None,
    as_kind: options.Kind = None,
    expect: options.Expect = None,
    weights: Annotated[
        Literal["all", "these"], typer.Option("--weights", help="Prove the law for all weights, or for the given ones.")
    ] = "all",
    uniform: Annotated[
        list[str] | None,
        typer.Option(
            "--uniform",
            metavar="PATTERN",
            help="First make matching entries (by origin or module) the same for every position; repeatable.",
        ),
    ] = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    certificate: options.Certificate = None,
    check_nodes: Annotated[
        bool, typer.Option("--check-nodes", help="Compare every fact of the proof with real runs at every node.")
    ] = False,
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
    allow_network: options.AllowNetwork = False,
    jax_python: options.JaxPython = None,
    quiet: options.Quiet = False,
) -> None:
    """Prove or refute one law, or measure it. It is expected to hold; --expect LAW=any expects nothing of it.

    \b
    Examples:
      orderproof prove my_model.py:build                    lists the laws that can be proved
      orderproof prove arch:llama --law causal
      orderproof prove "arch:gpt2?n_layer=1" --tiny --law prompt_permutation --uniform wpe
      orderproof prove "arch:llama?num_hidden_layers=126&hidden_size=16384&num_attention_heads=128&num_key_value_heads=8&intermediate_size=53248&vocab_size=128256" --law causal
      orderproof prove my_model.py:build --law causal --certificate causal.json
    """  # noqa: E501
    from orderproof.report.file_output import check_writable

    del jax_python  # its callback names it
    files = ReportFiles(json=json, html=html, junit=junit, sarif=sarif, certificate=certificate)
    check_writable(*files.paths, source=subject)
    layout = parse_layout(
        token_axis, output_axes, together=together, mode=mode, roles=role, shapes=shape, example=example
    )
    check_subject(subject, tiny=tiny, attention=attention, layout=layout, allow_network=allow_network, dtype=dtype)
    if not laws:
        _list_proved_laws(subject)
    options.check_laws(laws)
    if len(laws) > 1:  # one of several options would be dropped in silence
        raise UsageError(f"expected one --law; got {', '.join(laws)}; orderproof audit checks several")
    (law,) = laws
    expected = options.parse_expectations(expect)
    began = time.perf_counter()
    context = None
    if crash := go_on_in_child():
        report = crash.shown_report(subject, certificate=certificate is not None)
    else:
        with progress(quiet=quiet) as show, model_output_on_stderr():
            update = noted(show)
            update(f"loading {subject}", 0, 3)
            loaded = load_subject(
                subject, tiny=tiny, attention=attention, seed=seed, layout=layout, allow_network=allow_network,
                kind=as_kind, dtype=dtype, length=length,
            )  # fmt: skip
            from orderproof.auditing.api import audit_context, report_on_law
            from orderproof.auditing.explain.findings import undecide_inapplicable
            from orderproof.auditing.run import undecided_report

            update(f"proving {law}", 1, 3)
            context = audit_context(loaded, length=length, seed=seed)
            plan(undecided_report(context, chosen=laws, expect=expected))
            report = report_on_law(
                context, law, expect=expected, weights=weights, uniform=tuple(uniform or ()), check_nodes=check_nodes
            )
            findings = undecide_inapplicable(report.findings, {finding.law for finding in report.findings})
            report = report.model_copy(update={"findings": tuple(findings)})
            keep(report)
    report = report.model_copy(update={"seconds": round(time.perf_counter() - began, 3)})
    from orderproof.report import render_text

    written = files.write(report, context)
    if not quiet:
        console = report_console(files.paths)
        render_text(report, console)
        print_written(console, written)
    raise typer.Exit(report.exit_code)


def _list_proved_laws(subject: str) -> NoReturn:
    """Name the laws that can be proved. Raises `UsageError`, since one of them is missing on the command line."""
    for law in proved_laws():
        typer.echo(f"{law.code}  {law.name:<18}  {law.statement}", err=True)
    typer.echo("The other laws are measured: orderproof list laws", err=True)
    raise UsageError(f"expected one of these laws: orderproof prove {subject} --law {proved_laws()[0].name}")
