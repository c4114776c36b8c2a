"""An independent checker of certificates. It shares no code with the prover.

`certificate_file` reads a file; `recheck` checks one certificate of it. A certificate of a proof at one length is
checked by `checker`: `steps` decodes each step and compares its claimed fact with the derived one, and `operators`
derives it from `operator_table`. A certificate of a theorem is checked by `theorems/`, which does not need torch.
"""

from orderproof.recheck.assumptions import FINITE_SCORES_ASSUMPTION
from orderproof.recheck.certificate_file import read_certificates
from orderproof.recheck.check import recheck
from orderproof.recheck.result import RecheckResult

__all__ = ["FINITE_SCORES_ASSUMPTION", "RecheckResult", "read_certificates", "recheck"]
