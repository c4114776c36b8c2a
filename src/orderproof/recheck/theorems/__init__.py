"""The recheck of certificates of theorems: it needs neither torch nor Z3, and shares no code with the prover."""
