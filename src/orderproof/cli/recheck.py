"""`orderproof recheck`: check certificates with code that is independent of the prover."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress
from orderproof.errors import CertificateError
from orderproof.report.phrases import escape_control_characters


def recheck(
    certificate: Annotated[Path, typer.Argument(help="A file written by --certificate.")],
    derivation: Annotated[
        bool, typer.Option("--derivation", help="Print the proof of each theorem, step by step.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the exit code.")] = False,
) -> None:
    """Check every step of a certificate, independently of the prover.

    \b
    Example:
      orderproof prove arch:llama --tiny --law causal --certificate causal.json
      orderproof recheck causal.json
    """
    options.check_exists(certificate, "a certificate file")
    with progress(quiet=quiet) as update:
        update(f"reading {certificate}", 0, 1)
        import orderproof_recheck as checker

        outcomes: list[checker.RecheckResult | checker.CertificateError] = []
        try:
            certificates = checker.read_certificates(certificate)
        except checker.CertificateError as error:
            raise CertificateError(escape_control_characters(str(error))) from None
        for number, each in enumerate(certificates, start=1):
            update(f"checking certificate {number} of {len(certificates)}", number - 1, len(certificates))
            try:
                outcomes.append(checker.check_theorem(each))
            except checker.CertificateError as error:
                outcomes.append(error)
    for number, (each, outcome) in enumerate(zip(certificates, outcomes, strict=True), start=1):
        if isinstance(outcome, checker.CertificateError):
            _show(f"refused: certificate {number}: {outcome}", error=True)
        elif not quiet:
            for line in outcome.lines():
                _show(line)
            if derivation:
                from orderproof_recheck.derivation import derivation_lines

                for line in derivation_lines(each):
                    _show(f"  {line}")
    raise typer.Exit(any(isinstance(outcome, checker.CertificateError) for outcome in outcomes))


def _show(text: str, *, error: bool = False) -> None:
    """Print a text that contains strings of the certificate, which must not control the terminal."""
    typer.echo(escape_control_characters(text), err=error)
