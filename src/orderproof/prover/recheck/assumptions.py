"""The assumptions of a proof, in words."""

FINITE_SCORES_ASSUMPTION = (
    "scores of visible and of hidden tokens are finite and small compared with the masking value "
    "(finite mask, not -inf)"
)
