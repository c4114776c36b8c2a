"""`orderproof sensitivity`: how far the outputs of a model move when the words of sentences are reordered."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console
from orderproof.cli.outputs import print_written, write_outputs
from orderproof.cli.subject_argument import check_subject, load_subject
from orderproof.subject_spec import Layout

MODEL = (
    "A checkpoint folder or hub id, with weights and a tokenizer. "
    "Default, or with -: the bundled all-MiniLM-L6-v2."
)  # fmt: skip
FILE = (
    "A text file with one sentence per line; a pair of words to swap is marked *like* *this*. "
    "Default: 40 bundled sentences."
)  # fmt: skip
POOLING = "How a sentence vector is computed: mean, first or last token. Default: as the model's folder states."


def sensitivity(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help=MODEL)] = None,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help=FILE)] = None,
    pooling: Annotated[str | None, typer.Option("--pooling", metavar="mean|first|last", help=POOLING)] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="SENTENCES", help="Maximum number of sentences.")] = 100,
    json: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write JSON; - for standard output.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="PATH", help="Write a figure, .svg or .png; needs orderproof[plots]."),
    ] = None,
    seed: options.Seed = 0,
    attention: options.AttentionBackend = None,
    allow_network: options.AllowNetwork = False,
    quiet: options.Quiet = False,
) -> None:
    """Reorder the words of sentences and measure how far the model's outputs move.

    Roles and neighbours are swapped, spans of words shuffled, all words reversed. The distances are relative to those
    between different sentences, for every layer and for the sentence vector, with positions and without them.

    \b
    Examples:
      orderproof sensitivity                               the bundled real model on the bundled sentences
      orderproof sensitivity - corpus.txt --limit 200      the bundled model on a file
      orderproof sensitivity ./checkpoint --plot order.svg
      orderproof sensitivity ./checkpoint corpus.txt --json - --quiet
    """
    from orderproof.report.file_output import check_writable

    check_writable(json, plot)
    if plot is not None:
        from orderproof.report.figures import check_plot_path

        check_plot_path(plot)
    from orderproof.word_order.options import check_options
    from orderproof.word_order.sentences import read_sentences

    spec = None if model == "-" else model
    form = check_subject(spec, tiny=False, attention=attention, layout=Layout(), allow_network=allow_network)
    check_options(pooling, limit)
    sentences = None if file is None else read_sentences(file)
    with progress(quiet=quiet) as update:
        update(f"loading {spec or 'the bundled model'}", 0, 1)
        from orderproof.word_order.sensitivity import BUNDLED_SOURCE, measure_sensitivity

        subject = load_subject(
            spec, tiny=False, attention=attention, seed=seed, layout=Layout(), allow_network=allow_network,
            dtype="float32" if form in ("folder", "hub") else None,
        )  # fmt: skip
        source = BUNDLED_SOURCE if file is None else Path(file).name
        result = measure_sensitivity(
            subject, sentences, source=source, pooling=pooling, limit=limit, seed=seed, progress=update
        )
    from orderproof.report.file_output import write_file
    from orderproof.report.sensitivity_plot import write_sensitivity_plot

    written = write_outputs(
        (json, partial(write_file, result.to_json() + "\n")), (plot, partial(write_sensitivity_plot, result))
    )
    if not quiet:
        from orderproof.report.sensitivity_terminal import render_sensitivity

        console = report_console([json])
        render_sensitivity(result, console)
        if written:
            console.print()
        print_written(console, written)
