"""Sums of products: matrix products, linear maps, einsum.

Lemma. Let C[i, k] = sum_j A[i, j] B[j, k], with labels for the dimensions as in einsum.
  1. C[i, k] agrees in both runs where each of its products does: where both factors agree, or one is zero in both runs
     and the other finite.
  2. A moved along i gives C moved along i; likewise k in B.
  3. A and B moved along j by the same permutation leave C as it is: the sum has the same terms in another order. Only
     one of them moved along j: nothing follows.

Machine-checked (proofs/symbolic/steps.v): contraction_step, product_step.
Machine-checked (proofs/symbolic/moved_axes.v): sum_over_moved_axis, scores_of_moved_tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orderproof.logic.terms import FALSE, Formula, conjunction, disjunction
from orderproof.theorems.facts.frame import Labels, frame
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.numbers import beyond_ordinary
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, Ranges
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation, tensors
from orderproof.theorems.walks.operator_rules import operators

Labelled = tuple[OpenFact, Sequence[Hashable]]


@dataclass(frozen=True)
class SumOfProducts:
    """A sum of products: operands with a label for each dimension; those that the result lacks are summed over.

    `added` is broadcast to the sum.
    """

    operands: tuple[tuple[Any, Labels], ...]
    result: Labels
    added: Any = None


def linear(call: Operation[Any]) -> SumOfProducts:
    """X W^T + b."""
    weight = call.argument(1, "weight")
    if call.rank_of(weight) != 2:
        raise NotCovered("a linear map to one number")
    outer = [f"x{d}" for d in range(call.rank - 1)]
    operands = ((call.node.args[0], [*outer, "in"]), (weight, ["out", "in"]))
    return SumOfProducts(operands, [*outer, "out"], call.argument(2, "bias"))


def matmul(call: Operation[Any]) -> SumOfProducts:
    """A B."""
    return _matrices(call, *call.node.args[:2])


def addmm(call: Operation[Any]) -> SumOfProducts:
    """C + A B."""
    c, a, b = call.node.args[:3]
    return replace(_matrices(call, a, b), added=c)


def _matrices(call: Operation[Any], a: Any, b: Any) -> SumOfProducts:
    """A B, with the broadcasting of matmul."""
    left, right = call.rank_of(a), call.rank_of(b)
    rows, columns = ["row"] * (left > 1), ["column"] * (right > 1)
    batch = [f"batch {d}" for d in range(max(left, right, 2) - 2)]
    of_a = [*batch[len(batch) - max(left - 2, 0) :], *rows, "sum"]
    of_b = [*batch[len(batch) - max(right - 2, 0) :], "sum", *columns]
    return SumOfProducts(((a, of_a), (b, of_b)), [*batch, *rows, *columns])


def einsum(call: Operation[Any]) -> SumOfProducts:
    """A product by labels."""
    equation, nodes = call.node.args[0], call.node.args[1]
    if not isinstance(equation, str) or not isinstance(nodes, list | tuple) or "..." in equation:
        raise NotCovered("an einsum with an ellipsis")
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    return SumOfProducts(tuple(zip(tensors(nodes), map(list, left.split(",")), strict=True)), list(right))


def outer(call: Operation[Any]) -> SumOfProducts:
    """A b^T."""
    a, b = call.node.args[:2]
    return SumOfProducts(((a, ["row"]), (b, ["column"])), ["row", "column"])


LABELS: dict[str, Callable[[Operation[Any]], SumOfProducts]] = {
    "linear": linear, "einsum": einsum,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "__matmul__"), matmul),
    **dict.fromkeys(("addmm", "baddbmm"), addmm),
    **dict.fromkeys(("outer", "ger"), outer),
}  # fmt: skip
PRODUCTS = operators(*LABELS)


@PRODUCTS.open
def product(call: OpenOperation) -> OpenFact:
    """A sum of products, and what is added to it."""
    found = LABELS[call.name](call)
    if any(len(set(labels)) != len(labels) for _, labels in found.operands):
        raise NotCovered("an einsum with a diagonal")
    if call.node.kwargs.get("beta", 1) != 1:
        raise NotCovered("a scaled sum of products")
    result = contraction(call, [(call.fact(node), labels) for node, labels in found.operands], found.result)
    result = result if found.added is None else with_bias(call, result, call.fact(found.added))
    large = beyond_ordinary(call.node.kwargs.get("alpha", 1))
    return result if large is FALSE else OpenFact(result.dims, result.dtype, result.same, unbounded=large)


@PRODUCTS.moved
def moved_product(call: MovedOperation) -> MovedFact:
    """A sum of products, and what is added to it."""
    found = LABELS[call.name](call)
    result = call.combined([(call.fact(node), labels) for node, labels in found.operands], found.result)
    return result if found.added is None else call.broadcast([result, call.fact(found.added)])


def contraction(call: OpenOperation, operands: Sequence[Labelled], result: Sequence[Hashable]) -> OpenFact:
    """The fact about a sum of products over the labels that are not in the result."""
    common = frame(operands, result)
    placed = [common.place(fact, labels) for fact, labels in operands]
    ranges = [fact.ranges() for fact in placed]
    sizes = placed[0].sizes
    first_bound = sum(len(common.axes[label]) for label in result)
    zero = _product_is_zero(ranges)
    agrees = conjunction(*(fact.same for fact in placed)) | zero
    same = call.context.for_all(agrees, sizes, first_bound)
    loose = disjunction(*(part for r in ranges for part in (r.hidden, r.unbounded))) & ~zero
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, sizes, first_bound)
    vanishes = FALSE if zero is FALSE else call.context.for_all(zero, sizes, first_bound)
    call.context.note_sum(call.node, zero, sizes, first_bound)
    return OpenFact(
        tuple(common.axes[label] for label in result), call.dtype, same | vanishes, None, FALSE, vanishes, unbounded
    )


def _product_is_zero(ranges: Sequence[Ranges]) -> Formula:
    """Where one factor is zero and the others are finite."""
    return disjunction(*(
        conjunction(one.zero, *(other.finite for other in ranges if other is not one)) for one in ranges
    ))  # fmt: skip


def with_bias(call: OpenOperation, product: OpenFact, bias: OpenFact) -> OpenFact:
    """A product plus a tensor that is broadcast to it."""
    rank = len(product.dims)
    own = range(rank - len(bias.dims), rank)
    common = frame([(product, range(rank)), (bias, own)], range(rank))
    a, b = common.place(product, range(rank)), common.place(bias, own)
    r, s = a.ranges(), b.ranges()
    unbounded = r.unbounded | s.unbounded
    return OpenFact(a.dims, call.dtype, a.same & b.same, None, (r.hidden | s.hidden) & ~unbounded, FALSE, unbounded)
