"""Rules of the open walk: for a family of operators, the fact about the result from facts about the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from orderproof.diagnosis.domain.values import ORDINARY_LIMIT
from orderproof.logic.terms import FALSE, TRUE, Formula, Term, apply, as_term, holds
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact, Value, index, size_of
from orderproof.theorems.walks.operation import Operation, RuleTable
from orderproof.theorems.walks.overflow import fits

OpenFacts = OpenFact | tuple[OpenFact, ...]
MAY_WRAP = {  # operators whose integers may be so large that what is computed from them wraps around
    "pow", "mul", "multiply", "square", "prod", "cumprod", "matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm",
    "addcmul", "einsum", "linear", "outer", "ger", "__lshift__", "bitwise_left_shift", "exp2", "ldexp", "lcm",
}  # fmt: skip
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass
class Application(Operation[OpenFact]):
    """One operator applied at one node: its arguments, the facts about them, the shapes of its results."""

    def checked(self, facts: OpenFacts) -> OpenFacts:
        """The facts, if their dimensions have the sizes of the results. Raises `NotCovered`."""
        for fact, shape in zip(facts if isinstance(facts, tuple) else (facts,), self.shapes, strict=False):
            if len(fact.dims) != len(shape) or not all(
                self.context.equal_sizes(size_of(axes), size) for axes, size in zip(fact.dims, shape, strict=True)
            ):
                raise NotCovered("the rule of the operator gives another shape")
        return facts

    def finished(self, fact: OpenFact) -> OpenFact:
        """The fact with the dtype of the result; unknown integers that agree become a function of their indices."""
        fact = replace(fact, dtype=self.dtype)
        if isinstance(fact.value, Term) and not fits(self.context, fact.value, fact.sizes, fact.dtype):
            return OpenFact(fact.dims, fact.dtype, unbounded=TRUE)
        wraps = fact.dtype in INTEGERS and self.name in MAY_WRAP
        if fact.value is None and fact.same is TRUE and len(self.shapes) == 1 and not wraps:
            return with_function(fact, self.node.name, [i for i, _ in self.context.loops])
        return (
            replace(fact, same=TRUE, hidden=FALSE, zero=FALSE, unbounded=FALSE, low=FALSE)
            if fact.value is not None
            else fact
        )


def with_function(fact: OpenFact, name: str, loops: Sequence[Term] = ()) -> OpenFact:
    """The same integers or booleans in both runs, as an arbitrary function of their indices and those of loops."""
    if fact.dtype in INTEGERS and (fact.unbounded is not FALSE or fact.hidden is not FALSE):
        return fact  # the value of an integer says nothing of its size
    indices = [*(index(k) for k in range(len(fact.sizes))), *loops]
    if fact.dtype is torch.bool:
        return replace(fact, value=holds(name, *indices))
    return replace(fact, value=apply(name, *indices)) if fact.dtype in INTEGERS else fact


def number_fact(number: Any, dtype: torch.dtype = torch.float32) -> OpenFact:
    """The fact about a number among the arguments, as a tensor without dimensions."""
    if isinstance(number, bool):
        return OpenFact((), torch.bool, value=TRUE if number else FALSE)
    if isinstance(number, Term | int):
        return OpenFact((), torch.int64, value=as_term(number) if isinstance(number, int) else number)
    if isinstance(number, float):
        value: Value = Cases(((TRUE, number),))
        return OpenFact((), dtype, value=value)
    return OpenFact((), dtype, unbounded=TRUE)


def beyond_ordinary(*numbers: Any) -> Formula:
    """True if one of these numbers is as large as a mask, infinite or NaN: what is scaled by it may be anything."""
    large = any(type(x) in (int, float) and not abs(x) < ORDINARY_LIMIT for x in numbers)
    return TRUE if large else FALSE


OpenRule = Callable[[Application], OpenFacts]
_table: RuleTable[OpenRule] = RuleTable("orderproof.theorems.operators")
open_rule, find_open_rule = _table.register, _table.find
