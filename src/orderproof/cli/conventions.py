"""`orderproof conventions`: what a mask, a window or a position means to attention and rotary functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console
from orderproof.cli.outputs import print_written, rendered, write_outputs
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from orderproof.conventions.library import AnyFunction

FUNCTIONS = (
    "Functions: a library (torch), one of its functions (torch.sdpa), of another version (jax@0.10.2) or interpreter "
    "(jax:PYTHON), or your own (file.py:attention)."
)
AGAINST = "Compare with this function; exit code 1 if the first one has other conventions."


def conventions(
    functions: Annotated[list[str] | None, typer.Argument(metavar="FUNCTION", help=FUNCTIONS)] = None,
    against: Annotated[str | None, typer.Option("--against", metavar="FUNCTION", help=AGAINST)] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the functions of the installed libraries.")] = False,
    json: options.Json = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write Markdown; - for standard output.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Measure the conventions of attention and rotary functions: masks, masked rows, windows, scales, pairs, angles.

    Each answer is read off the output of a small exact call. Your own function is known by its arguments: query, key
    and value (q, k, v), mask, causal, scale, window, soft_cap, lengths; or vectors, and positions. It is called, so
    run only code that you trust.

    \b
    Examples:
      orderproof conventions torch transformers              two libraries, question by question
      orderproof conventions my_layers.py:attention --against torch.sdpa
      orderproof conventions torch.sdpa --json -             as JSON, schema version 1
      orderproof engines install jax                         a library in an environment of its own
      orderproof conventions jax                             that library
      orderproof conventions onnxruntime@1.23.2 onnxruntime  two versions, side by side
    """
    from orderproof.report.file_output import check_writable

    check_writable(json, markdown)
    if not (functions or listed):
        raise UsageError("expected a function or a library, or --list; got none")
    if against is not None and len(functions or ()) != 1:
        raise UsageError(f"expected one function with --against; got {len(functions or ())}")
    with progress(quiet=quiet) as report_progress:
        report_progress("loading the functions", 0, 1)
        from orderproof.conventions import find_functions, function_names, libraries_elsewhere, measure

        if listed:
            elsewhere = [f"{each.name}: {each.where}" for each in libraries_elsewhere()]
            typer.echo("\n".join([*function_names(), *elsewhere]))
            return
        found = find_functions(functions or ())
        if against is not None:
            found += _only(find_functions([against]), against)
        report = measure(found, compare=against is not None, progress=report_progress)
    from orderproof.report.conventions_terminal import conventions_markdown, render_conventions

    command = " ".join(["orderproof conventions", *(functions or ()), *(["--against", against] if against else [])])
    written = write_outputs(
        (json, rendered(lambda: report.to_json() + "\n")),
        (markdown, rendered(lambda: conventions_markdown(report, command))),
    )
    if not quiet:
        console = report_console([json, markdown])
        render_conventions(report, console)
        print_written(console, written)
    raise typer.Exit(report.exit_code)


def _only(found: list[AnyFunction], name: str) -> list[AnyFunction]:
    """The function that a name finds. Raises `UsageError` if it finds several."""
    if len(found) != 1:
        raise UsageError(f"expected one function with --against; {name} has {len(found)}")
    return found
