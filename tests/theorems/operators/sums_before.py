"""Programs with a running sum over chunks, less the sums of the chunks themselves."""

from __future__ import annotations

from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, from_chunks, in_chunks


def states(m: Program, x: Tensor, *, another: bool = False, scale: float = 1.0) -> Tensor:
    """Each token with the sum of the chunks before its own."""
    sums = in_chunks(m.first(x)).sum(2)
    own = in_chunks(m.second(x)).sum(2) if another else sums
    before = sums.cumsum(1) - (own if scale == 1.0 else own * scale)
    return from_chunks(in_chunks(x) + before[:, :, None], x.shape[1])


PROGRAMS = [
    Case("sums of the chunks before", states, frozenset({"causal", "batch"})),
    Case("sums of chunks less others", lambda m, x: states(m, x, another=True), frozenset({"batch"})),
    Case("sums of chunks less half of their own", lambda m, x: states(m, x, scale=0.5), frozenset({"batch"})),
    Case("sums of rows before", lambda m, x: x.cumsum(0) - x, frozenset({"causal"})),
]
MUTANTS = mutants_of(
    "theorems.operators.reduction.scan",
    M("sum_of_another_tensor", "total.args[0] is not own", "False", program="sums of chunks less others", quick=True),
    M(
        "sum_with_the_element",
        "_up_to(call, fact, dim, at_most)",
        "_up_to(call, fact, dim, less)",
        program="sums of the chunks before",
    ),
)
