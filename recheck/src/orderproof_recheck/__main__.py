"""The command `orderproof-recheck`, which is also `python -m orderproof_recheck`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orderproof_recheck._version import __version__
from orderproof_recheck.certificate_file import read_certificates
from orderproof_recheck.derivation import derivation_lines
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem

EPILOG = """example:
  orderproof prove arch:llama --tiny --law causal --certificate causal.json
  orderproof-recheck causal.json

exit codes: 0 every certificate is accepted; 1 a certificate is refused; 2 a file cannot be read"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check each certificate of a file and print a result for each; the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _check(given)
    except BrokenPipeError:  # the reader of the output has ended, as `head` does
        sys.stdout = None  # so that nothing is flushed at exit
        return 141


def _check(given: argparse.Namespace) -> int:
    try:
        certificates = read_certificates(given.file)
    except CertificateError as error:
        sys.stderr.write(_printable(f"orderproof-recheck: {error}"))
        return 2
    results = [_checked(certificate) for certificate in certificates]
    if given.json:
        sys.stdout.write(json.dumps(results, indent=2) + "\n")
    else:
        for number, (certificate, result) in enumerate(zip(certificates, results, strict=True), start=1):
            if not result["accepted"]:
                sys.stdout.write(_printable(f"refused: certificate {number}: {result['reason']}"))
                continue
            derivation = (f"  {line}" for line in derivation_lines(certificate)) if given.derivation else ()
            sys.stdout.writelines(map(_printable, (*result["lines"], *derivation)))
    return 0 if all(result["accepted"] for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="orderproof-recheck", description="Check every step of the certificates in a file.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", help="a file that orderproof wrote with --certificate")
    parser.add_argument("--derivation", action="store_true", help="print each proof, step by step")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--version", action="version", version=f"orderproof-recheck {__version__}")
    return parser


def _checked(certificate: Any) -> dict[str, Any]:
    try:
        result = check_theorem(certificate)
    except CertificateError as error:
        return {"accepted": False, "reason": str(error)}
    return {"accepted": True, **asdict(result), "lines": result.lines()}


def _printable(line: str) -> str:
    """A line without control characters: it contains strings of the certificate."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line) + "\n"


if __name__ == "__main__":
    sys.exit(main())
