"""`orderproof sensitivity`: how far a model's outputs move when the words of sentences change places."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console

MODEL = (
    "A checkpoint folder or hub id, with weights and a tokenizer. "
    "Without one, or as -: the bundled all-MiniLM-L6-v2."
)  # fmt: skip
FILE = (
    "A text file, one sentence a line; a pair of words that may trade places is marked *so* and *so*. "
    "Without one: 40 bundled sentences."
)  # fmt: skip
POOLING = "How a sentence's vector is taken: mean, first or last. As the model's folder states by default."


def sensitivity(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help=MODEL)] = None,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help=FILE)] = None,
    pooling: Annotated[str | None, typer.Option("--pooling", metavar="mean|first|last", help=POOLING)] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="SENTENCES", help="The most sentences to take.")] = 100,
    json: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write JSON; - for standard output.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="PATH", help="Draw it, as .svg or .png; needs orderproof[plots].")
    ] = None,
    seed: options.Seed = 0,
    attention: options.Backend = None,
    allow_network: options.Network = False,
    quiet: options.Quiet = False,
) -> None:
    """Move the words of sentences and measure how far the model's outputs move: how much it cares about order.

    Roles exchanged, neighbours exchanged, runs of words shuffled, the words reversed; against how far other sentences
    lie apart; for every layer, for the sentence vector, and with the positions taken out of the recorded graph.

    \b
    Examples:
      orderproof sensitivity                               the bundled real model on the bundled sentences
      orderproof sensitivity - corpus.txt --limit 200      the bundled model on a file
      orderproof sensitivity ./checkpoint --plot order.svg
      orderproof sensitivity ./checkpoint corpus.txt --json - --quiet
    """
    from orderproof.report.destination import check

    check(json, plot)
    if plot is not None:
        from orderproof.report.drawing import check_plot

        check_plot(plot)
    with progress(quiet=quiet) as tell:
        tell("loading", 0, 1)
        from orderproof.auditing.sensitivity import BUNDLED
        from orderproof.auditing.sensitivity import sensitivity as measured
        from orderproof.auditing.sentences import read_sentences
        from orderproof.cli.loading import load_subject

        sentences = None if file is None else read_sentences(file)
        spec = None if model == "-" else model
        subject = load_subject(
            spec, tiny=False, attention=attention, seed=seed, token_axis=None, allow_network=allow_network
        )
        source = BUNDLED if file is None else Path(file).name
        found = measured(subject, sentences, source=source, pooling=pooling, limit=limit, seed=seed, progress=tell)
    if json is not None:
        from orderproof.report.destination import write

        write(found.to_json() + "\n", json)
    if plot is not None:
        from orderproof.report.sensitivity_plot import write_plot

        write_plot(found, plot)
    if not quiet:
        from orderproof.report.sensitivity_text import render_sensitivity

        console = report_console([json])
        render_sensitivity(found, console)
        if written := [path for path in (json, plot) if path not in (None, "-")]:
            console.print(f"\nwritten: {', '.join(str(p) for p in written)}", highlight=False)
