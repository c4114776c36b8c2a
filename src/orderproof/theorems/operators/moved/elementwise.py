"""Operators that compute each element from one element of each operand, and tensors of one number.

Machine-checked (proofs/rules/pointwise_lemma.v): pointwise_equivariant.
Machine-checked (proofs/symbolic/moved_axes.v): free_axis, still_meets_moved.
"""

from __future__ import annotations

from orderproof.theorems.facts.moved_fact import Motion, MovedFact, uniform
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.moved_operation import MovedOperation, moved_rule


@moved_rule(
    "<pointwise>", "to", "_to_copy", "type_as", "contiguous", "lift_fresh", "real", "imag", "alias", "detach", "clone",
    "__and__", "__or__", "__xor__", "softplus", "polar", "prelu", "_prelu_kernel", "multiply", "divide", "subtract",
    "where", "masked_fill", "clamp", "clip",
)  # fmt: skip
def pointwise(call: MovedOperation) -> MovedFact:
    """Elementwise with broadcasting."""
    if call.name == "where" and len(call.shapes) > 1:
        raise NotCovered("the indices of true elements")
    if call.name in ("prelu", "_prelu_kernel") and len(call.fact(call.node.args[1]).dims) != call.rank:
        raise NotCovered("a slope for each channel")
    return call.broadcast(call.operands())


@moved_rule(
    "full", "full_like", "new_full", "scalar_tensor", "zeros", "zeros_like", "new_zeros", "ones", "ones_like",
    "new_ones",
)  # fmt: skip
def one_number(call: MovedOperation) -> MovedFact:
    """A tensor of one number."""
    return uniform(call.shape, Motion.FREE)


@moved_rule("arange", "linspace", "eye")
def of_indices(call: MovedOperation) -> MovedFact:
    """Numbers that follow from the index alone: the same in both runs."""
    return uniform(call.shape, Motion.STILL)
