"""Which numbers of a model are ordinary and which act as a mask, and what a proof assumes of them.

An ordinary number is finite and small next to a mask. That sums, products and quotients of ordinary numbers are
ordinary is an assumption about scores.
"""

from __future__ import annotations

from typing import Final

import torch

MASKING_THRESHOLD: Final = 1e8  # float32: an entry this negative masks, under the assumption on the scores
ORDINARY_LIMIT: Final = 6e4  # float16 has nothing larger than 65504
FINITE_SCORES_ASSUMPTION = (
    "scores of visible and of hidden tokens are finite and small compared with the masking value "
    "(finite mask, not -inf)"
)
VISIBLE_ROW_ASSUMPTION = "each token sees a key: a row of scores that are all -inf gives NaN"
SMALL_INTEGERS_ASSUMPTION = "integers that depend on inputs, such as position ids, are less than 2^31 in size"


def masking_threshold(dtype: torch.dtype) -> float:
    """The size from which a negative number masks: 6e4 in float16, which has no larger numbers."""
    return ORDINARY_LIMIT if dtype is torch.float16 else MASKING_THRESHOLD
