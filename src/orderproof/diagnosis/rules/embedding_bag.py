"""Bags of embeddings: each row of the result is a symmetric function of the rows that one bag looks up.

Lemma (reduction_invariant), for bags: see reduction.py. Let C[k, :] = h(W[I[n], :] s[n] for n in bag k), h a sum, a
mean or a maximum, W the same in both runs, and bags that constant offsets cut out of I.
  1. I and s moved so that every bag keeps its indices: C is unchanged. Moved so that the indices of every bag become
     those of one bag: C is moved as the bags are.
  2. C[k, :] depends on everything that I[n] and s[n] depend on for n in bag k, and on W.
A move that tears a bag apart does not determine C. Offsets that depend on the input have no lemma.
  3. The sizes of the bags and the places of maxima are functions of all operands.
Proof. lookup_equivariant, then reduction_invariant for each bag. That an index is left out (`padding_idx`) depends on
its value only.
Arithmetic: over the reals; a floating-point sum depends on its order.
Machine-checked (proofs/rules/reduction_lemma.v): reduction_invariant, sum_symmetric.
Machine-checked (proofs/rules/lookup_lemma.v): lookup_equivariant.
Not machine-checked: floating point, and which indices the offsets put into a bag.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.diagnosis.domain.fact import ALWAYS, NEVER, Fact, constant_dependence, unmoved_fact
from orderproof.diagnosis.domain.move import STILL, Move, permuted_axis
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.diagnosis.operands import Operand, labelled_operand
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule, shape_of
from orderproof.diagnosis.rules.contraction import contract
from orderproof.diagnosis.rules.reduction import LEMMA


@rule(LEMMA, "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(call: OperatorCall) -> Facts:
    """A sum, a mean or a maximum of looked-up rows for each bag."""
    table, indices, offsets = (call.args[k] for k in range(3))
    if not call.fact(table).has_no_moves:
        raise RuleNotApplicable("the rows of the embedding table move")
    starts = call.constants.array(offsets) if offsets in call.constants else None
    if starts is None:
        raise RuleNotApplicable("bags at offsets that depend on the input have no lemma")
    count = shape_of(indices)[0]
    if starts[0] != 0 or (call.argument(7, "include_last_offset", False) and starts[-1] != count):
        raise RuleNotApplicable("bags that leave indices out have no lemma")
    if (np.diff(starts, append=count) < 0).any():  # torch sorts the offsets, or reads memory that it did not write
        raise RuleNotApplicable("bags that do not begin one after the other have no lemma")
    call.constants.mark_used(offsets)
    shapes = [tuple(int(s) for s in value.shape) for value in call.node.meta["val"]]
    inside = _membership(starts, shapes[0][0], count)
    moves = _moves_of_bags(inside, call.fact(indices).moves[0])
    bags = Fact(inside.shape, moves, constant_dependence(2, NEVER), ValueRanges.of_constant(inside))
    operands = [Operand(bags, ("bag", "index"), None, "offsets"), labelled_operand(call, indices, ["index"], 1)]
    weights = call.argument(6, "per_sample_weights")
    if isinstance(weights, Node):
        operands.append(labelled_operand(call, weights, ["index"], 6))
    read = contract(call, operands, ("bag",), shapes[0][:1])
    dependence = np.maximum(read.dependence[:, None], call.fact(table).dependence.max())
    facts = [call.fact(n) for n in call.node.all_input_nodes]
    any_move = not all(f.has_no_moves for f in facts)
    total = ALWAYS if any_move else max(int(f.dependence.max()) for f in facts)
    return (Fact(shapes[0], (read.moves[0], STILL), dependence), *(unmoved_fact(s, total) for s in shapes[1:]))


def _membership(starts: NDArray[np.int64], bags: int, indices: int) -> NDArray[np.bool_]:
    """[bag, index]: the indices of each bag; the last bag ends with the indices if no offset ends it."""
    ends = np.append(starts[1:], indices)[:bags]
    places = np.arange(indices)
    inside: NDArray[np.bool_] = (places >= starts[:bags, None]) & (places < ends[:, None])
    return inside


def _moves_of_bags(inside: NDArray[np.bool_], move: Move) -> tuple[Move, Move]:
    """The moves of [bag, index] that keep every bag together if the indices move so; still if there are none."""
    if move.permutations is None:
        return STILL, STILL
    bag_of = inside.argmax(axis=0)
    images = np.empty((len(move.permutations), len(inside)), dtype=np.int64)
    for found, image in zip(images, move.permutations, strict=True):
        for bag, own in enumerate(inside):
            places = image[own]
            found[bag] = bag_of[places[0]] if len(places) else bag
        if not (inside[found][:, image] == inside).all() or len(set(found.tolist())) != len(inside):
            return STILL, STILL
    return permuted_axis(images), move
