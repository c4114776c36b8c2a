"""All samples of operators. The place of a sample in SAMPLES is its seed, so nothing is inserted before others.

The samples of a new rule are in its own test file, `tests/diagnosis/rules/NAME.py`, which is found by its location.
"""

from __future__ import annotations

from tests.diagnosis.corpus.operators.elementwise import POINTWISE
from tests.diagnosis.corpus.operators.indexing import DENSE, FIXED, LOOKUP
from tests.diagnosis.corpus.operators.movement import MOVEMENT
from tests.diagnosis.corpus.operators.products import ATTENTION, CONTRACTION, FIBRE
from tests.diagnosis.corpus.operators.reductions import REDUCTION, SCAN, VISIBLE, WINDOWS
from tests.diagnosis.rule_tests import defined_by_rule_tests
from tests.diagnosis.sampling.operands import S, X

ADDED = [  # at the end: the place of a sample is its seed
    S("group_norm", (X(2, 4, 2), 2)),
    S("copy", (X(3, 2), X(3, 2))),
    S("copy", (X(3, 2), X(2))),
    S("einsum", ("ij->ji", [X(3, 3)])),
    S("einsum", ("ijk->kij", [X(3, 3, 3)])),
    S(
        "scaled_dot_product_attention",
        (X(3, 2), X(3, 2), X(3, 2), X(3, 3, kind="mask", buffer=True)),
        known=False,
    ),
]

EXTENDED = [  # further cases of operators that have samples above
    S("batch_norm", (X(3, 3), X(3), X(3), None, None, True, 0.1, 1e-5, False)),
    S("batch_norm", (X(1, 3, 3), X(3), None, None, None, True, 0.1, 1e-5, False)),
    S("batch_norm", (X(2, 2), None, None, X(2), X(2, kind="positive"), True, 0.1, 1e-5, False)),
    S("index.Tensor", (X(3, 3), [X(3, kind="index", below=3, buffer=True), X(3, kind="index", below=3)])),
    S(
        "index.Tensor",
        (X(3, 3, 2), [X(3, 1, kind="index", below=3, buffer=True), X(2, kind="index", below=3)]),
    ),
    S(
        "index.Tensor",
        (X(3, 2, 3), [X(3, kind="index", below=3, buffer=True), None, X(3, kind="index", below=3)]),
    ),
    S("index.Tensor", (X(3, 3), [X(3, kind="index", below=3), X(1, kind="index", below=3, buffer=True)])),
    S("index_put", (X(3, 2), [X(2, kind="index", below=3, buffer=True)], X(2, 2))),
    S("index_put", (X(2, 3), [None, X(2, kind="index", below=3, buffer=True)], X(2))),
    S("index_put", (X(3, 3), [X(1, kind="index", below=3, buffer=True)], X(1))),
    S("index_put", (X(3, 2), [X(2, kind="index", below=3, buffer=True)], X(2, 2), True)),
    S("index_copy", (X(3, 3), 1, X(2, kind="index", below=3, buffer=True), X(3, 2))),
    S("baddbmm", (X(3, 3, kind="mask", buffer=True), X(2, 3, 2), X(2, 2, 3))),
    S("addmm", (X(3, kind="mask", buffer=True), X(3, 2), X(2, 3)), {"beta": 2}),
]

# The place of a sample is the seed of its trials: these came later, and leave the seeds of the others as they were.
LATER = [
    S("mode", (X(2, 3, kind="int"),), reads=(0,)),
    S("kthvalue", (X(3, 3), 2), reads=(0,)),
    S("kthvalue", (X(3, 3), 1, 0, True), reads=(0, 1)),
]

SAMPLES = [
    *(POINTWISE + CONTRACTION + FIBRE + MOVEMENT + ATTENTION + LOOKUP + REDUCTION + SCAN + ADDED + DENSE + VISIBLE),
    *FIXED,
    *WINDOWS,
    *defined_by_rule_tests("SAMPLES"),
    *EXTENDED,
    *LATER,
]

OPERATORS = list(dict.fromkeys(sample.operator for sample in SAMPLES))
