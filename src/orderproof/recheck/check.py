"""The check of a certificate."""

from __future__ import annotations

from typing import Any

from orderproof.errors import CertificateError
from orderproof.recheck.certificate_file import KIND
from orderproof.recheck.result import RecheckResult
from orderproof.recheck.theorems.theorem import check_theorem


def recheck(certificate: Any) -> RecheckResult:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    if not isinstance(certificate, dict) or certificate.get("kind") != KIND:
        raise CertificateError("expected the certificate of a theorem; got something else")
    return check_theorem(certificate)
