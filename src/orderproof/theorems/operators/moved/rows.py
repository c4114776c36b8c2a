"""Operators on the elements along some dimensions: reductions, softmax, normalization, sums from the start, sorting.

Machine-checked (proofs/symbolic/moved_axes.v): softmax_of_moved_scores, whole_row_function.
Machine-checked (proofs/rules/normalization_lemma.v): normalization_equivariant.
Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, sorted_values_invariant.
"""

from __future__ import annotations

from dataclasses import replace

from torch.fx import Node

from orderproof.theorems.facts.moved_fact import NOTHING, Dim, Motion, MovedFact, still, uniform
from orderproof.theorems.operators.moved.elementwise import pointwise
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation, moved_rule

_WITH_NUMBER_FIRST = {"linalg_vector_norm": 2, "norm": 2}  # place of `dim` among the arguments


@moved_rule(
    "sum", "mean", "prod", "amax", "amin", "all", "any", "var", "std", "logsumexp", "linalg_vector_norm", "norm",
    "var_mean", "_is_all_true", "count_nonzero",
)  # fmt: skip
def reduction(call: MovedOperation) -> MovedFacts:
    """Functions of the elements along some dimensions that do not depend on their order."""
    dims = call.argument(_WITH_NUMBER_FIRST.get(call.name, 1), "dim")
    rank = call.rank
    if isinstance(dims, bool):
        dims = None
    chosen = range(rank) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
    fact = _without(call, call.operand, [int(d) % rank for d in chosen if rank])
    return (fact,) * len(call.shapes) if len(call.shapes) > 1 else fact


def _without(call: MovedOperation, fact: MovedFact, chosen: list[int]) -> MovedFact:
    """The fact without some dimensions, which stay with size one if the result has as many dimensions."""
    if len(call.shapes[0]) == len(fact.dims):
        return MovedFact(tuple(() if d in chosen else dim for d, dim in enumerate(fact.dims)))
    return MovedFact(tuple(dim for d, dim in enumerate(fact.dims) if d not in chosen))


@moved_rule("max", "min", "argmax", "argmin")
def extremum(call: MovedOperation) -> MovedFacts:
    """The largest element, and its index if it is asked for."""
    second = call.argument(1, "dim")
    if isinstance(second, Node) or "other" in call.node.kwargs:
        return pointwise(call)
    arg, fact = call.name.startswith("arg"), call.operand
    if second is None:
        for dim in fact.dims if arg else ():
            still(dim, "the index of a token")
        return uniform(call.shape, Motion.STILL)
    place = int(second) % max(call.rank, 1)
    dim = fact.dims[place] if fact.dims else ()
    if arg:
        still(dim, "the index of a token")
    found = _without(call, fact, [place]) if fact.dims else fact
    return (found, _unknown_where_moved(found, dim)) if len(call.shapes) > 1 else found


def _unknown_where_moved(indices: MovedFact, dim: Dim) -> MovedFact:
    """The fact about indices along a dimension; nothing is claimed of the indices of tokens."""
    moves = any(axis.motion is Motion.MOVED for axis in dim)
    return replace(indices, written=NOTHING) if moves else indices


@moved_rule("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax")
def softmax(call: MovedOperation) -> MovedFact:
    """Each element is divided by the sum along a dimension, whose terms are the same in another order."""
    return call.operand


@moved_rule("layer_norm", "rms_norm", "native_layer_norm")
def layer_norm(call: MovedOperation) -> MovedFacts:
    """Normalization over the last dimensions, then elementwise."""
    found = call.broadcast(call.operands())
    if len(call.shapes) == 1:
        return found
    count = len(call.argument(1, "normalized_shape"))
    statistics = MovedFact((*found.dims[: len(found.dims) - count], *[()] * count))
    return (found, statistics, statistics)


@moved_rule("group_norm")
def group_norm(call: MovedOperation) -> MovedFact:
    """Normalization over groups of channels and all places: the channels are known by their index."""
    fact = call.operand
    channels = still(fact.dims[1], "the channels move")
    others = [call.fact(x) for x in call.node.args[1:] if isinstance(x, Node)]
    for other in others:
        still(other.dims[0], "the channels move")
    return fact.with_dim(1, channels)


@moved_rule("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def from_the_start(call: MovedOperation) -> MovedFacts:
    """Sums, products and extrema of all elements up to each index."""
    return _by_index(call, call.dim(1))


@moved_rule("sort", "argsort", "topk", "kthvalue")
def sort(call: MovedOperation) -> MovedFacts:
    """Elements in order, which are the same whatever the order of the operand, and their indices."""
    position, default = {"sort": (1, -1), "argsort": (1, -1)}.get(call.name, (2, -1))
    place, fact = call.dim(position, default=default), call.operand
    if call.name == "argsort" or not fact.dims:
        return _by_index(call, place)
    if call.name == "topk" and not call.argument(4, "sorted", True):
        still(fact.dims[place], "the largest elements come in an order that depends on that of all")
    in_order = fact.with_dim(place, tuple(replace(axis, motion=Motion.STILL, before=0) for axis in fact.dims[place]))
    return _by_index(call, place, in_order, _unknown_where_moved(in_order, fact.dims[place]))


def _by_index(call: MovedOperation, place: int, *facts: MovedFact) -> MovedFacts:
    """A function of the elements along a dimension and their indices, for each slice on its own.

    The facts are those about the results before the dimension gets its size; by default that about the operand.
    """
    facts = facts or (call.operand,) * len(call.shapes)
    results = []
    for shape, fact in zip(call.shapes, facts, strict=False):
        if fact.dims:
            still(fact.dims[place], "tokens are counted, or sorted, by their index")
        own = uniform([shape[place]], Motion.STILL).dims if len(shape) == len(fact.dims) and shape else ()
        results.append(replace(fact.with_dim(place, *own), written=fact.written) if fact.dims else fact)
    return tuple(results) if len(results) > 1 else results[0]
