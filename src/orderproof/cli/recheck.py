"""`orderproof recheck`: replay a certificate with code that shares nothing with the prover."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.errors import CertificateError


def recheck(
    certificate: Annotated[Path, typer.Argument(help="A file written by --certificate.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the exit code.")] = False,
) -> None:
    """Check every step of a certificate, independently of the prover.

    \b
    Example:
      orderproof prove arch:llama --tiny --law causal --certificate causal.json
      orderproof recheck causal.json
    """
    from orderproof.prover.certificate import read
    from orderproof.prover.recheck import recheck as check

    refused = False
    for k, each in enumerate(read(certificate)):
        try:
            done = check(each)
        except CertificateError as error:
            typer.echo(f"refused: certificate {k + 1}: {error}", err=True)
            refused = True
            continue
        if not quiet:
            typer.echo(
                f"accepted: {done.law} of {done.output} in {done.subject}, {done.steps} steps, {done.weights} weights"
            )
            for text in done.given:
                typer.echo(f"  given {text}")
            for text in done.assumptions:
                typer.echo(f"  assuming {text}")
    raise typer.Exit(1 if refused else 0)
