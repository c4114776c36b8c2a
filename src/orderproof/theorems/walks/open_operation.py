"""An operator of the walk over values that agree in two runs, with the facts about its operands."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orderproof.logic.terms import FALSE, TRUE, Term
from orderproof.theorems.facts.numbers import INTEGERS, with_function
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.overflow import fits

OpenFacts = OpenFact | tuple[OpenFact, ...]
MAY_WRAP = {  # operators whose integers may be so large that what is computed from them wraps around
    "pow", "mul", "multiply", "square", "prod", "cumprod", "matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm",
    "addcmul", "einsum", "linear", "outer", "ger", "__lshift__", "bitwise_left_shift", "exp2", "ldexp", "lcm",
}  # fmt: skip


@dataclass
class OpenOperation(Operation[OpenFact]):
    """One operator applied at one node: its arguments, the facts about them, the shapes of its results."""

    def finished(self, fact: OpenFact) -> OpenFact:
        """The fact with the dtype of the result; unknown integers that agree become a function of their indices."""
        fact = replace(fact, dtype=self.dtype)
        if isinstance(fact.value, Term) and not fits(self.context, fact.value, fact.sizes, fact.dtype):
            return OpenFact(fact.dims, fact.dtype, unbounded=TRUE)
        wraps = fact.dtype in INTEGERS and self.name in MAY_WRAP
        if fact.value is None and fact.same is TRUE and len(self.shapes) == 1 and not wraps:
            return with_function(fact, self.node.name, [i for i, _ in self.context.loops])
        if fact.value is None:
            return fact
        return replace(fact, same=TRUE, hidden=FALSE, zero=FALSE, unbounded=FALSE, low=FALSE)
