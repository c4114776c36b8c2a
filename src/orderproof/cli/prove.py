"""`orderproof prove`: one law, with the proof or the witness."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console


def prove(
    subject: Annotated[str, typer.Argument(help=options.SUBJECT)],
    law: Annotated[str, typer.Option("--law", help="The law, by name or code.")],
    length: options.Length = None,
    expect: options.Expect = None,
    weights: Annotated[
        Literal["all", "these"], typer.Option("--weights", help="Prove it for all weights, or for these.")
    ] = "all",
    uniform: Annotated[
        list[str] | None,
        typer.Option(
            "--uniform",
            metavar="PATTERN",
            help="Make matching entries (by origin or module) uniform first: the model without those positions.",
        ),
    ] = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    certificate: options.Certificate = None,
    check_nodes: Annotated[
        bool, typer.Option("--check-nodes", help="Check every fact at every node against real runs.")
    ] = False,
    seed: options.Seed = 0,
    tiny: options.Tiny = False,
    attention: options.Backend = None,
    token_axis: options.Axis = None,
    allow_network: options.Network = False,
    quiet: options.Quiet = False,
) -> None:
    """Prove or refute one law.

    \b
    Examples:
      orderproof prove arch:llama --law causal
      orderproof prove "arch:gpt2?n_layer=1" --tiny --law prompt_blind --uniform wpe
      orderproof prove "arch:llama?num_hidden_layers=126&hidden_size=16384&num_attention_heads=128&num_key_value_heads=8&intermediate_size=53248&vocab_size=128256" --law causal
      orderproof prove my_model.py:build --law causal --certificate causal.json
    """  # noqa: E501
    from orderproof.report.destination import check

    check(json, html, junit, sarif, certificate)
    began = time.perf_counter()
    with progress(quiet=quiet) as tell:
        tell("loading", 0, 3)
        from orderproof.cli.loading import load_subject

        expected = options.expectations(expect)
        found = load_subject(
            subject, tiny=tiny, attention=attention, seed=seed, token_axis=token_axis, allow_network=allow_network
        )
        from orderproof.auditing.api import examination, one_law

        tell(f"proving {law}", 1, 3)
        exam = examination(found, length=length, seed=seed)
        report = one_law(
            exam, law, expect=expected, weights=weights, uniform=tuple(uniform or ()), check_nodes=check_nodes
        )
    report = report.model_copy(update={"seconds": round(time.perf_counter() - began, 3)})
    from orderproof.report import render_text, write_html, write_json, write_junit, write_sarif

    for path, write in ((json, write_json), (html, write_html), (junit, write_junit), (sarif, write_sarif)):
        if path is not None:
            write(report, path)
    if certificate is not None:
        from orderproof.cli.certificates import write_all

        write_all(exam, report, certificate, uniform=tuple(uniform or ()), weights=weights)
    if not quiet:
        render_text(report, report_console([json, html, junit, sarif, certificate]))
    raise typer.Exit(report.exit_code)
