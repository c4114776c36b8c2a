"""Normalizations: each element of the result is computed from all elements along the normalized dimensions.

Lemma. Let C[i, j] = (A[i, j] - mean) / deviation * weight[j] + bias[j], with the statistics of row i.
  1. C[i, j] agrees in both runs where all of row i does, and the parameters are the same.
  2. A moved along i gives C moved along i. Moved along j, the statistics stay as they are: C moves with A, unless the
     parameters tell the elements apart.

Machine-checked (proofs/symbolic/steps.v): normalization_step.
Machine-checked (proofs/rules/normalization_lemma.v): normalization_equivariant.
"""

from __future__ import annotations

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, as_term, conjunction
from orderproof.theorems.facts.moved_fact import MovedFact, still
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.operators.movement.shape import reshaped
from orderproof.theorems.operators.reduction.reduction import from_whole_rows
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

LAYER_NORM = operators("layer_norm", "native_layer_norm", "rms_norm")


@LAYER_NORM.open
def layer_norm(call: OpenOperation) -> OpenFact:
    """Normalization over the last dimensions."""
    _require_same_parameters(call)
    count = len(call.argument(1, "normalized_shape"))
    rank = len(call.operand.dims)
    found = from_whole_rows(call, call.operand, list(range(rank - count, rank)))
    if not isinstance(found, OpenFact):
        raise NotCovered("a normalization that returns its statistics")
    return found


@LAYER_NORM.moved
def moved_layer_norm(call: MovedOperation) -> MovedFacts:
    """Normalization over the last dimensions, then elementwise."""
    found = call.broadcast(call.operands())
    if len(call.shapes) == 1:
        return found
    count = len(call.argument(1, "normalized_shape"))
    statistics = MovedFact((*found.dims[: len(found.dims) - count], *[()] * count))
    return (found, statistics, statistics)


GROUP_NORM = operators("group_norm")


@GROUP_NORM.open
def group_norm(call: OpenOperation) -> OpenFact:
    """Normalization over groups of channels and all places."""
    _require_same_parameters(call)
    groups = call.argument(1, "num_groups")
    shape = call.shape
    if not shape[1].is_constant or not isinstance(groups, int):
        raise NotCovered("the number of channels is open")
    split = [shape[0], as_term(groups), as_term(shape[1].constant // groups), *shape[2:]]
    fact = reshaped(call, call.operand, split)
    inner = OpenOperation(call.node, call.facts, (tuple(split),), call.context)
    found = from_whole_rows(inner, fact, list(range(2, len(split))))
    assert isinstance(found, OpenFact)
    return reshaped(call, found, shape)


@GROUP_NORM.moved
def moved_group_norm(call: MovedOperation) -> MovedFact:
    """Normalization over groups of channels and all places: the channels are known by their index."""
    fact = call.operand
    channels = still(fact.dims[1], "the channels move")
    others = [call.fact(x) for x in call.node.args[1:] if isinstance(x, Node)]
    for other in others:
        still(other.dims[0], "the channels move")
    return fact.with_dim(1, channels)


BATCH_NORM = operators("batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm")


@BATCH_NORM.open
def batch_norm(call: OpenOperation) -> OpenFact | tuple[OpenFact, ...]:
    """Normalization with stored statistics: one element at a time. With its own: of all elements of a channel."""
    large = _has_large_parameters(call)
    fact = call.operand
    if call.name == "batch_norm" and call.argument(5, "training", False):
        if call.argument(3, "running_mean") is not None or call.argument(4, "running_var") is not None:
            raise NotCovered("batch norm writes its statistics: use evaluation mode, or a norm without them")
        if large:
            raise NotCovered("a normalization has parameters as large as a mask")
        return from_whole_rows(call, fact, [d for d in range(len(fact.dims)) if d != 1])
    ranges = fact.ranges()
    unbounded = TRUE if large else ranges.hidden | ranges.unbounded
    result = OpenFact(fact.dims, fact.dtype, fact.same, unbounded=unbounded)
    return (result, *(OpenFact(((),), fact.dtype) for _ in call.shapes[1:])) if len(call.shapes) > 1 else result


def _require_same_parameters(call: OpenOperation) -> None:
    if _has_large_parameters(call):
        raise NotCovered("a normalization has parameters as large as a mask")


def _has_large_parameters(call: OpenOperation) -> bool:
    """True if a parameter may be no ordinary number. Raises `NotCovered` if one depends on tokens."""
    others = [call.fact(x) for x in call.node.args[1:] if isinstance(x, Node)]
    if conjunction(*(f.same for f in others)) is not conjunction():
        raise NotCovered("a normalization has parameters that depend on tokens")
    return any((r := f.ranges()).unbounded is not FALSE or r.hidden is not FALSE for f in others)
