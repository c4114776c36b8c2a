"""A tensor with numbers around it, or with its own elements.

Lemma. Inside, an element is one of the operand; outside, the number, or the element at an index that the mode gives.
  1. It agrees in both runs where the element of the operand does, and everywhere outside, if a number is there.
  2. It moves as the operand does: along a padded dimension, the tokens between the numbers move.

Machine-checked (proofs/symbolic/steps.v): piecewise_step.
Machine-checked (proofs/rules/movement_lemma.v): concatenation_fact.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from typing import Any

from orderproof.logic.terms import Term, as_term, at_most, conditional, conjunction, less, negation
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, uniform
from orderproof.theorems.facts.numbers import of_number
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import index_along, reindexed, with_single_axis
from orderproof.theorems.operators.composition.concatenation import one_after_the_other
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import number
from orderproof.theorems.walks.operator_rules import operators

PAD = operators("pad", "constant_pad_nd")


@PAD.open
def pad(call: OpenOperation) -> OpenFact:
    """A tensor with numbers around it."""
    mode = call.argument(2, "mode", "constant") if call.name == "pad" else "constant"
    value = call.argument(3, "value", None) if call.name == "pad" else call.argument(2, "value", 0)
    widths = list(call.argument(1, "pad"))
    fact = call.operand
    for k in range(len(widths) // 2):
        before, after = number(widths[2 * k]), number(widths[2 * k + 1])
        if before is None or after is None:
            raise NotCovered("the width of a padding is not known")
        dim = len(fact.dims) - 1 - k
        if not (before.is_constant and after.is_constant and before.constant == 0 and after.constant == 0):
            fact = with_single_axis(fact, dim)
            if mode in ("constant", None):
                fact = _padded(call, fact, dim, before, value or 0)
            else:
                fact = _repeated(call, fact, dim, before, str(mode))
    return fact


def _repeated(call: OpenOperation, fact: OpenFact, dim: int, before: Term, mode: str) -> OpenFact:
    """Elements of a dimension around it: its ends, those next to its ends in reverse, or those of the other end."""
    size, total = size_of(fact.dims[dim]), call.shape[dim]
    at = index_along(fact, dim, total) - before
    ends = {
        "replicate": (as_term(0), size - 1),
        "reflect": (-at, (size - 1) * 2 - at),
        "circular": (at + size, at - size),
    }
    if mode not in ends or not call.context.proves(conjunction(at_most(0, before), at_most(before + size, total)), ()):
        raise NotCovered("padding repeats elements in another way")
    first, last = ends[mode]
    inner = conditional(less(at, 0), first, conditional(less(at, size), at, last))
    return reindexed(fact, dim, total, inner)


def _padded(call: OpenOperation, fact: OpenFact, dim: int, before: Term, value: float) -> OpenFact:
    size, total = size_of(fact.dims[dim]), call.shape[dim]
    at = index_along(fact, dim, total)
    inner = reindexed(fact, dim, total, at - before)
    inside = conjunction(at_most(before, at), less(at, before + size))
    return piecewise([(inside, inner), (negation(inside), of_number(inner, value))], fact.dtype)


@PAD.moved
def moved_pad(call: MovedOperation) -> MovedFact:
    """A tensor with other elements around it."""
    if call.name == "pad" and call.argument(2, "mode", "constant") not in ("constant", None):
        raise NotCovered("padding repeats elements")
    widths: list[Any] = list(call.argument(1, "pad"))
    fact = call.operand
    for k in range(len(widths) // 2):
        place = call.rank - 1 - k
        own_widths = [w if isinstance(w, Term) else as_term(w) for w in widths[2 * k : 2 * k + 2]]
        if not call.context.proves(conjunction(*(at_most(0, w) for w in own_widths)), ()):
            raise NotCovered("a tensor may be cut by padding")
        if widths[2 * k : 2 * k + 2] != [0, 0]:
            around = uniform(own_widths, Motion.FREE)
            own = one_after_the_other([around.dims[0], fact.dims[place], around.dims[1]], call.shape[place])
            fact = fact.with_dim(place, own)
    return fact
