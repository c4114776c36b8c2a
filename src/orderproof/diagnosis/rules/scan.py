"""Cumulative operators and sorts: operators that read a dimension by position.

Lemma (scan_dependence). Let C[i] be a function of A[j] for the j in a window w(i) of one dimension: j <= i for
a cumulative sum, all j for a sort, a range around i for a convolution (convolution.py).
  1. C[i] depends on what A[j] depends on, for j in w(i).
  2. Moved along any other dimension, C moves in the same way.
  3. Moved along this one, C is not determined: cumsum of [1, 2] is [1, 3], of [2, 1] it is [2, 3]. But the values of
     a sort, or the k largest, are those of the set: they do not change. Their indices do.
  4. If a row has at most k visible entries and the others are masked, the indices of the k largest contain every
     visible one. With more than k visible entries they certainly contain none: of [1, 2] the largest is the second,
     of [2, 1] the first.
Proof. 1 and 2: C[i] reads nothing else, and the other indices are free. 4: a visible entry is larger than every
masked one, so fewer than k entries precede it. Arithmetic: any; for a finite mask, 4 rests on the assumption on scores.
Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, cumulative_sum_reads_prefix,
cumulative_sum_not_determined, sorted_values_invariant, top_contains_visible, top_cuts_visible.
"""

from __future__ import annotations

import numpy as np

from orderproof.diagnosis.domain.fact import ALWAYS, Fact, IndexCoverage, compress, constant_dependence
from orderproof.diagnosis.domain.move import STILL, is_permuted
from orderproof.diagnosis.domain.values import masking_elements, row_visibility
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, dtype_of, rule, shape_of
from orderproof.diagnosis.rules.reduction import only_values_used
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION

LEMMA = "scan_dependence"


def _require_unpermuted(fact: Fact, dim: int, operator: str) -> Fact:
    if is_permuted(fact.moves[dim]):
        raise RuleNotApplicable(f"{operator} along dimension {dim}, which moves: the result depends on the order")
    moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))
    return Fact(fact.shape, moves, fact.dependence)


@rule(LEMMA, "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def cumulative(call: OperatorCall) -> Facts:
    """A cumulative sum, product or extremum."""
    name = call.target.split(".")[1]
    fact = call.fact(call.args[0])
    dim = int(call.args[1]) % max(len(fact.shape), 1)
    fact = _require_unpermuted(fact, dim, name)
    result = Fact(fact.shape, fact.moves, compress(np.maximum.accumulate(fact.dependence, axis=dim)))
    return (result, result) if isinstance(call.node.meta["val"], list | tuple) else result


@rule(LEMMA, "sort", "topk", "argsort", "msort")
def sort(call: OperatorCall) -> Facts:
    """An order by value along one dimension: every position may hold any element."""
    fact = call.fact(call.args[0])
    name = call.target.split(".")[1]
    schema = [x.name for x in call.node.target._schema.arguments]  # type: ignore[union-attr]
    dim = int(call.argument(schema.index("dim"), "dim", -1)) % len(fact.shape) if "dim" in schema else 0
    values = call.node.meta["val"]
    several = isinstance(values, list | tuple)
    sorted_values = name != "topk" or bool(
        call.argument(4, "sorted", True)
    )  # otherwise torch returns them in any order
    values_alone = name == "msort" or (several and only_values_used(call))
    is_symmetric = is_permuted(fact.moves[dim]) and sorted_values and values_alone  # case 3: the values of a set
    if not is_symmetric:
        fact = _require_unpermuted(fact, dim, name)
    moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))
    dependence = fact.dependence.max(axis=dim, keepdims=True)
    shapes = [tuple(int(s) for s in v.shape) for v in (values if several else [values])]
    results = [Fact(s, moves, dependence) for s in shapes]
    if name == "topk":
        results[1] = Fact(shapes[1], moves, dependence, index_coverage=_topk_coverage(call, dim))
    if is_symmetric and several:  # no node reads the indices
        results[1] = Fact(shapes[1], moves, constant_dependence(len(shapes[1]), ALWAYS))
    return tuple(results) if several else results[0]


def _topk_coverage(call: OperatorCall, dim: int) -> IndexCoverage | None:
    """The positions that the indices of the k largest certainly contain (case 4); None if there are none."""
    ranges, count = call.fact(call.args[0]).ranges, int(call.args[1])
    shape, dtype = shape_of(call.args[0]), dtype_of(call.args[0])
    if count >= shape[dim]:
        return IndexCoverage(dim, np.ones([s if d == dim else 1 for d, s in enumerate(shape)], dtype=bool))
    if ranges is None or not call.argument(3, "largest", True):
        return None
    masked, rows = masking_elements(ranges, dtype), row_visibility(ranges, dtype, dim)
    sizes = np.broadcast_shapes(masked.shape, rows.visible.shape)
    sizes = tuple(shape[dim] if d == dim else s for d, s in enumerate(sizes))
    visible, masked, high = (np.broadcast_to(x, sizes) for x in (rows.visible, masked, ranges.high))
    few_enough = visible.sum(axis=dim, keepdims=True) <= count
    covered = visible & (visible | masked).all(axis=dim, keepdims=True) & few_enough
    if not covered.any():
        return None
    if (covered.any(axis=dim, keepdims=True) & masked & (high > -np.inf)).any():
        call.assume(FINITE_SCORES_ASSUMPTION)
    return IndexCoverage(dim, covered)
