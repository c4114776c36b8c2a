"""The rules of the operators: one file for each family, and nothing else to edit for a new operator.

Each file declares its operators in a table. `OPERATORS` has them all, by name.
"""

from orderproof_recheck.operator import Operator
from orderproof_recheck.rules.attention import ATTENTION
from orderproof_recheck.rules.buckets import BUCKETS
from orderproof_recheck.rules.chosen_places import CHOSEN_PLACES
from orderproof_recheck.rules.convolution import CONVOLUTION
from orderproof_recheck.rules.creation import CREATION
from orderproof_recheck.rules.lookup import LOOKUP
from orderproof_recheck.rules.movement import MOVEMENT
from orderproof_recheck.rules.normalization import NORMALIZATION
from orderproof_recheck.rules.parts import PARTS
from orderproof_recheck.rules.pieces import PIECES
from orderproof_recheck.rules.pointwise import POINTWISE
from orderproof_recheck.rules.pooling import POOLING
from orderproof_recheck.rules.products import PRODUCTS
from orderproof_recheck.rules.recurrence import RECURRENT
from orderproof_recheck.rules.rows import ROWS
from orderproof_recheck.rules.running import RUNNING
from orderproof_recheck.rules.softmax import SOFTMAX
from orderproof_recheck.rules.sums_by_index import SUMS_BY_INDEX
from orderproof_recheck.rules.triangular import TRIANGULAR

OPERATORS: dict[str, Operator] = {
    **ATTENTION, **BUCKETS, **CONVOLUTION, **CREATION, **LOOKUP, **MOVEMENT, **NORMALIZATION, **PARTS, **PIECES,
    **POINTWISE, **POOLING, **PRODUCTS, **RECURRENT, **ROWS, **RUNNING, **SOFTMAX, **SUMS_BY_INDEX, **TRIANGULAR,
    **CHOSEN_PLACES,
}  # fmt: skip
