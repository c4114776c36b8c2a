"""The assumptions of a proof, in words."""

REAL_NUMBERS = "over the real numbers, for finite activations"  # the beginning of the first assumption of every proof

FINITE_SCORES_ASSUMPTION = (
    "scores of visible and of hidden tokens are finite and small compared with the masking value "
    "(finite mask, not -inf)"
)
LOOP_ASSUMPTION = "each iteration of a loop runs the operators of the one before"  # then the places of the loops
DEPTH_ASSUMPTION = (
    "for other numbers of layers: each has the code of a recorded one, and the code around them does not depend on "
    "their number"
)
SMALL_INTEGERS_ASSUMPTION = "integers that depend on inputs, such as position ids, are less than 2^31 in size"
