"""`orderproof init`: write a commented file to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from orderproof.errors import UsageError
from orderproof.registry import did_you_mean

TEMPLATES = {"adapter": "adapter_template.py.txt"}  # as a user names it -> the file in this package
OUTPUT = "Write it to a new file; by default to standard output."


def init(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="adapter: how to call a model of your own.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=OUTPUT)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented template that runs as it is: a model adapter, with a small model in it to replace.

    \b
    Examples:
      orderproof init adapter --output my_adapter.py
      orderproof audit my_adapter.py:adapter --as decoder
    """
    from orderproof.report.file_output import check_writable, write_file

    if what not in TEMPLATES:
        raise UsageError(f"expected {' or '.join(TEMPLATES)}; got {what!r}{did_you_mean(what, TEMPLATES)}")
    if output is not None and str(output) != "-" and output.expanduser().exists() and not force:
        raise UsageError(f"expected a new file; {str(output)!r} exists; give another name, or --force to replace it")
    check_writable(output)
    text = resources.files("orderproof.cli").joinpath(TEMPLATES[what]).read_text(encoding="utf-8")
    write_file(text, output or "-")
    if output is not None and str(output) != "-":
        typer.echo(f"written: {output}")
