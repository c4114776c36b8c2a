"""Samples and mutants of the rule for bags of embeddings."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.diagnosis.sampling.operands import S, X

BAGS = "_embedding_bag"


def ids(count: int) -> object:
    """Indices into a table with three rows."""
    return X(count, kind="index", below=3)


def starts(count: int) -> object:
    """Offsets of zero: every bag but the last is empty."""
    return X(count, kind="index", below=1, buffer=True)


SAMPLES = [
    S(BAGS, (X(3, 2), ids(3), starts(1)), reads=(0,)),
    S(BAGS, (X(3, 2), ids(4), starts(1), False, 1), reads=(0,)),
    S(BAGS, (X(3, 2), ids(3), starts(2), False, 0), reads=(0,)),
    S(BAGS, (X(3, 2), ids(3), starts(1), False, 2), reads=(0,)),
    S(BAGS, (X(3, 3), ids(3), starts(1), False, 0, False, X(3)), reads=(0,)),
    S(BAGS, (X(3, 2), ids(3), starts(1), False, 0, False, None, False, 1), reads=(0,)),
    S("_embedding_bag_forward_only", (X(3, 2), ids(3), starts(1)), reads=(0,)),
]
MUTANTS = mutants_of(
    "embedding_bag",
    M(
        "table_that_moves",
        """
            if not $call.fact($table).has_no_moves:
                raise $Refusal($_text)
        """,
        """
            if False:
                raise $Refusal($_text)
        """,
        BAGS,
    ),
    M(
        "table_that_depends",
        "np.maximum($read.dependence[:, None], $call.fact($table).dependence.max())",
        "$read.dependence[:, None]",
        BAGS,
        quick=True,
    ),
    M(
        "bags_without_indices",
        "($places >= $starts[:$bags, None]) & ($places < $ends[:, None])",
        "($places < $starts[:$bags, None]) & ($places < $ends[:, None])",
        BAGS,
    ),
)
