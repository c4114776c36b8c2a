"""The forms of a derivation, one small class each. `operator_table` says which operator has which form."""
