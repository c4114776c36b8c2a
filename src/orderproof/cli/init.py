"""`orderproof init`: write a commented file to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from orderproof.errors import UsageError
from orderproof.registry import did_you_mean

ADAPTER, CONFIG = "adapter", "config"
TEMPLATE = "adapter_template.py.txt"  # in this package
WHAT = "adapter: how to call a model of your own; config: what to audit in a package."
PACKAGE = "Of config: a folder, a file or an installed package with modules of torch; by default this folder."
OUTPUT = "Write it to a new file; by default to standard output."


def init(
    what: Annotated[str, typer.Argument(metavar="adapter|config", help=WHAT)],
    package: Annotated[str | None, typer.Argument(metavar="[PACKAGE]", help=PACKAGE)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=OUTPUT)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented file to start from: a model adapter that runs as it is, or the configuration of a project.

    The configuration names the functions of the package that build modules, and its modules that need no argument.

    \b
    Examples:
      orderproof init adapter --output my_adapter.py
      orderproof audit my_adapter.py:adapter --as decoder
      orderproof init config --output orderproof.toml      the modules of this folder
      orderproof audit                                     all of them
    """
    from orderproof.report.file_output import check_writable, write_file

    if what not in (ADAPTER, CONFIG):
        raise UsageError(f"expected {ADAPTER} or {CONFIG}; got {what!r}{did_you_mean(what, (ADAPTER, CONFIG))}")
    if what == ADAPTER and package is not None:
        raise UsageError(f"expected no package with {ADAPTER}, whose template has a model of its own; got {package!r}")
    if output is not None and str(output) != "-" and output.expanduser().exists() and not force:
        raise UsageError(f"expected a new file; {str(output)!r} exists; give another name, or --force to replace it")
    check_writable(output)
    write_file(_text(what, package, output), output or "-")
    if output is not None and str(output) != "-":
        typer.echo(f"written: {output}")


def _text(what: str, package: str | None, output: Path | None) -> str:
    if what == ADAPTER:
        return resources.files("orderproof.cli").joinpath(TEMPLATE).read_text(encoding="utf-8")
    from orderproof.configuration.first_file import first_file

    return first_file(package, Path() if output is None else output.expanduser().parent)
