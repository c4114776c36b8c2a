"""The assumptions of a proof, in words."""

REAL_NUMBERS = "over the real numbers, for finite activations"  # the beginning of the first assumption of every proof

FINITE_SCORES_ASSUMPTION = (
    "scores of visible and of hidden tokens are finite and small compared with the masking value "
    "(finite mask, not -inf)"
)
SMALL_INTEGERS_ASSUMPTION = "integers that depend on inputs, such as position ids, are less than 2^31 in size"
