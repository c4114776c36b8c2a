"""Check the certificates of orderproof's theorems, with the standard library alone.

`read_certificates` reads a file; `check_theorem` checks one certificate of it. Nothing here is shared with the prover.

    theorem          the parts of a certificate in order; `statements` says what each law states
    recording        all steps of a recorded call; `steps`, `facts` and `reading` are about one of them
    permuted/        the same for laws that permute the tokens
    logic/           terms, formulas, and the procedure that decides them
    rules/           what each operator reads: one file for each family
"""

from orderproof_recheck._version import __version__
from orderproof_recheck.certificate_file import read_certificates
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.result import RecheckResult
from orderproof_recheck.theorem import check_theorem

__all__ = ["CertificateError", "RecheckResult", "__version__", "check_theorem", "read_certificates"]
