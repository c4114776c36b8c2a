"""An independent checker of certificates. It shares no code with the prover.

`certificate_file` reads a file. `checker` reads the header and the relation of the two runs, and checks the output.
`steps` decodes each step and compares its claimed fact with the derived one. `operators` derives it: `operator_table`
gives the lemma and the form of each operator, and `forms` has one small class for each form.
"""

from orderproof.prover.recheck.certificate_file import read_certificates
from orderproof.prover.recheck.checker import RecheckResult, recheck
from orderproof.prover.recheck.relations import FINITE_SCORES_ASSUMPTION

__all__ = ["FINITE_SCORES_ASSUMPTION", "RecheckResult", "read_certificates", "recheck"]
