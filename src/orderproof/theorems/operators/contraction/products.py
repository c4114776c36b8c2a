"""Sums of products: matrix products, linear maps, einsum.

A sum agrees in both runs where each of its products does: where both factors agree, or one is zero in both runs and the
other finite.

Machine-checked (proofs/symbolic/steps.v): contraction_step, product_step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from torch.fx import Node

from orderproof.logic.terms import FALSE, Formula, conjunction, disjunction
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, Ranges
from orderproof.theorems.walks.open_operation import Application, beyond_ordinary, open_rule

Labelled = tuple[OpenFact, Sequence[Hashable]]


def contraction(call: Application, operands: Sequence[Labelled], result: Sequence[Hashable]) -> OpenFact:
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
    return OpenFact(
        tuple(common.axes[label] for label in result), call.dtype, same | vanishes, None, FALSE, vanishes, unbounded
    )


def _product_is_zero(ranges: Sequence[Ranges]) -> Formula:
    """Where one factor is zero and the others are finite."""
    return disjunction(*(
        conjunction(one.zero, *(other.finite for other in ranges if other is not one)) for one in ranges
    ))  # fmt: skip


def with_bias(call: Application, product: OpenFact, bias: OpenFact) -> OpenFact:
    """A product plus a tensor that is broadcast to it."""
    rank = len(product.dims)
    own = range(rank - len(bias.dims), rank)
    common = frame([(product, range(rank)), (bias, own)], range(rank))
    a, b = common.place(product, range(rank)), common.place(bias, own)
    r, s = a.ranges(), b.ranges()
    unbounded = r.unbounded | s.unbounded
    return OpenFact(a.dims, call.dtype, a.same & b.same, None, (r.hidden | s.hidden) & ~unbounded, FALSE, unbounded)


@open_rule("linear")
def linear(call: Application) -> OpenFact:
    """X W^T + b."""
    fact, weight = call.operand, call.fact(call.argument(1, "weight"))
    if len(weight.dims) != 2:
        raise NotCovered("a linear map to one number")
    outer = [f"x{d}" for d in range(len(fact.dims) - 1)]
    found = contraction(call, [(fact, [*outer, "in"]), (weight, ["out", "in"])], [*outer, "out"])
    bias = call.argument(2, "bias")
    return found if bias is None else with_bias(call, found, call.fact(bias))


@open_rule("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def matmul(call: Application) -> OpenFact:
    """A B."""
    return product(call, call.operand, call.fact(call.node.args[1]))


def product(call: Application, a: OpenFact, b: OpenFact) -> OpenFact:
    """The fact about A B, with the broadcasting of matmul."""
    rows = ["row"] if len(a.dims) > 1 else []
    columns = ["column"] if len(b.dims) > 1 else []
    outer = max(len(a.dims), len(b.dims)) - 2
    batch = [f"batch {d}" for d in range(max(outer, 0))]
    left = [*batch[len(batch) - max(len(a.dims) - 2, 0) :], *rows, "sum"]
    right = [*batch[len(batch) - max(len(b.dims) - 2, 0) :], "sum", *columns]
    return contraction(call, [(a, left), (b, right)], [*batch, *rows, *columns])


@open_rule("addmm", "baddbmm", "addbmm")
def addmm(call: Application) -> OpenFact:
    """C + A B."""
    if call.name == "addbmm" or call.node.kwargs.get("beta", 1) != 1:
        raise NotCovered("a scaled sum of products")
    c, a, b = (call.fact(x) for x in call.node.args[:3])
    found = with_bias(call, product(call, a, b), c)
    large = beyond_ordinary(call.node.kwargs.get("alpha", 1))
    return found if large is FALSE else OpenFact(found.dims, found.dtype, found.same, unbounded=large)


@open_rule("einsum")
def einsum(call: Application) -> OpenFact:
    """A product by labels."""
    equation, nodes = call.node.args[0], call.node.args[1]
    if not isinstance(equation, str) or not isinstance(nodes, list | tuple) or "..." in equation:
        raise NotCovered("an einsum with an ellipsis")
    left, arrow, right = equation.replace(" ", "").partition("->")
    labels = [list(part) for part in left.split(",")]
    if not arrow:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    if any(len(set(part)) != len(part) for part in labels):
        raise NotCovered("an einsum with a diagonal")
    facts = [call.fact(x) for x in nodes if isinstance(x, Node)]
    return contraction(call, list(zip(facts, labels, strict=True)), list(right))


@open_rule("outer", "ger")
def outer(call: Application) -> OpenFact:
    """A b^T."""
    return contraction(call, [(call.operand, ["row"]), (call.fact(call.node.args[1]), ["column"])], ["row", "column"])
