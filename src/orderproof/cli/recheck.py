"""`orderproof recheck`: check certificates with code that is independent of the prover."""

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
    from orderproof.prover.recheck import read_certificates
    from orderproof.prover.recheck import recheck as check
    from orderproof.report.phrases import escape_control_characters

    def show(text: str, *, error: bool = False) -> None:
        """Print a text that contains strings of the certificate, which must not control the terminal."""
        typer.echo(escape_control_characters(text), err=error)

    try:
        certificates = read_certificates(certificate)
    except CertificateError as error:
        raise CertificateError(escape_control_characters(str(error))) from None
    refused = False
    for number, each in enumerate(certificates, start=1):
        try:
            result = check(each)
        except CertificateError as error:
            show(f"refused: certificate {number}: {error}", error=True)
            refused = True
            continue
        if quiet:
            continue
        show(
            f"accepted: {result.law} of {result.output} in {result.subject}, "
            f"{result.steps} steps, {result.weights} weights"
        )
        for text in result.premises:
            show(f"  given {text}")
        for text in result.assumptions:
            show(f"  assuming {text}")
    raise typer.Exit(1 if refused else 0)
