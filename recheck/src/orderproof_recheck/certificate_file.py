"""Reading a file of certificates, which anyone may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orderproof_recheck.errors import CertificateError

VERSION = 4  # of the format
KIND = "theorem"
MAX_FILE_BYTES = 50_000_000


def read_certificates(path: str | Path) -> list[dict[str, Any]]:
    """The certificates in a file: one, or a list of them. Raises `CertificateError`.

    At most MAX_FILE_BYTES are read, from a device or a pipe too.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CertificateError(f"expected a certificate file; {path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise CertificateError(f"expected certificates of at most {MAX_FILE_BYTES // 10**6} MB; {path} is larger")
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"expected a certificate (JSON); {path} is not JSON: {error}") from None
    certificates = data if isinstance(data, list) else [data]
    if not certificates:
        raise CertificateError(f"expected a certificate; {path} holds none: nothing was proved for every length")
    if any(not isinstance(c, dict) or c.get("certificate") != VERSION for c in certificates):
        raise CertificateError(f"expected a certificate of version {VERSION}; {path} has other content")
    for number, certificate in enumerate(certificates, start=1):
        if certificate.get("kind") != KIND:
            law, subject = (str(certificate.get(key, "?"))[:80] for key in ("law", "subject"))
            raise CertificateError(
                f"expected certificates of theorems; in {path}, certificate {number} ({law} of {subject}) is of a "
                "proof at one length, which recheck no longer checks; "
                f"orderproof prove SUBJECT --law {law} --certificate PATH writes that of the theorem"
            )
    return certificates
