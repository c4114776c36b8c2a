"""An independent checker of certificates of theorems. It shares no code with the prover, and needs no package.

`certificate_file` reads a file; `recheck` checks one certificate of it. `theorems/` derives every step again and
decides every implication.
"""

from orderproof.recheck.certificate_file import read_certificates
from orderproof.recheck.check import recheck
from orderproof.recheck.result import RecheckResult

__all__ = ["RecheckResult", "read_certificates", "recheck"]
