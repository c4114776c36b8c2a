"""The check of a certificate of either kind."""

from __future__ import annotations

from typing import Any

from orderproof.recheck.result import RecheckResult
from orderproof.recheck.theorems.theorem import KIND, check_theorem


def recheck(certificate: Any) -> RecheckResult:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    if isinstance(certificate, dict) and certificate.get("kind") == KIND:
        return check_theorem(certificate)
    from orderproof.recheck.checker import recheck as check_one_length  # imports torch

    return check_one_length(certificate)
