"""`python -m orderproof.recheck FILE`: the recheck with the standard library alone.

The exit code is 0 if every certificate is accepted, 1 if one is refused, and 2 if the file cannot be read.
"""

from __future__ import annotations

import sys

from orderproof.errors import CertificateError
from orderproof.recheck.certificate_file import read_certificates
from orderproof.recheck.check import recheck


def main(arguments: list[str]) -> int:
    """Check each certificate of a file and print a result for each; the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        _show("usage: python -m orderproof.recheck CERTIFICATE")
        return 2
    refused = 0
    try:
        certificates = read_certificates(arguments[0])
    except CertificateError as error:
        _show(str(error))
        return 2
    for number, certificate in enumerate(certificates, start=1):
        try:
            lines = recheck(certificate).lines()
        except CertificateError as error:
            refused += 1
            lines = [f"refused: certificate {number}: {error}"]
        for line in lines:
            _show(line)
    return 1 if refused else 0


def _show(line: str) -> None:
    """Print a line that contains strings of the certificate, which must not control the terminal."""
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
    sys.stdout.write("".join(shown) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
