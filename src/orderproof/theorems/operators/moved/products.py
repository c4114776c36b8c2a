"""Sums of products: matrix products, einsum, linear maps, attention.

A sum over tokens has the same terms in both runs. That is the step `softmax(P S P^T) P V = P softmax(S) V` of the
argument, one operator at a time.

Machine-checked (proofs/symbolic/moved_axes.v): sum_over_moved_axis, scores_of_moved_tokens.
"""

from __future__ import annotations

from torch.fx import Node

from orderproof.theorems.facts.moved_fact import MovedFact, size, still
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.moved_operation import Labels, MovedOperation, moved_rule


@moved_rule("linear")
def linear(call: MovedOperation) -> MovedFact:
    """X W^T + b."""
    fact, weight = call.operand, call.fact(call.argument(1, "weight"))
    if len(weight.dims) != 2:
        raise NotCovered("a linear map to one number")
    outer = list(range(len(fact.dims) - 1))
    operands: list[tuple[MovedFact, Labels]] = [(fact, [*outer, "in"]), (weight, ["out", "in"])]
    bias = call.argument(2, "bias")
    if bias is not None:
        operands.append((call.fact(bias), ["out"]))
    return call.combined(operands, [*outer, "out"])


@moved_rule("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def matmul(call: MovedOperation) -> MovedFact:
    """A B."""
    return _product(call, call.operand, call.fact(call.node.args[1]))


def _product(call: MovedOperation, a: MovedFact, b: MovedFact) -> MovedFact:
    rows = ["row"] if len(a.dims) > 1 else []
    columns = ["column"] if len(b.dims) > 1 else []
    batch = [f"batch {d}" for d in range(max(len(a.dims), len(b.dims), 2) - 2)]
    left = [*batch[len(batch) - max(len(a.dims) - 2, 0) :], *rows, "sum"]
    right = [*batch[len(batch) - max(len(b.dims) - 2, 0) :], "sum", *columns]
    return call.combined([(a, left), (b, right)], [*batch, *rows, *columns])


@moved_rule("addmm", "baddbmm")
def addmm(call: MovedOperation) -> MovedFact:
    """C + A B."""
    c, a, b = (call.fact(x) for x in call.node.args[:3])
    return call.broadcast([c, _product(call, a, b)])


@moved_rule("einsum")
def einsum(call: MovedOperation) -> MovedFact:
    """A product by labels."""
    equation, nodes = call.node.args[0], call.node.args[1]
    if not isinstance(equation, str) or not isinstance(nodes, list | tuple) or "..." in equation:
        raise NotCovered("an einsum with an ellipsis")
    left, arrow, right = equation.replace(" ", "").partition("->")
    labels = [list(part) for part in left.split(",")]
    if not arrow:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    facts = [call.fact(x) for x in nodes if isinstance(x, Node)]
    return call.combined(list(zip(facts, labels, strict=True)), list(right))


@moved_rule("scaled_dot_product_attention")
def attention(call: MovedOperation) -> MovedFact:
    """softmax(Q K^T + mask) V for queries [..., query, width], keys and values [..., key, width]."""
    query, key, value = (call.fact(x) for x in call.node.args[:3])
    if call.argument(4, "dropout_p", 0.0) != 0.0:
        raise NotCovered("attention with dropout")
    if not len(query.dims) == len(key.dims) == len(value.dims):
        raise NotCovered("queries, keys and values with another number of dimensions")
    outer = [f"batch {d}" for d in range(len(query.dims) - 2)]
    if call.node.kwargs.get("enable_gqa") and outer:
        key, value = _with_repeated_heads(query, key), _with_repeated_heads(query, value)
    scores: list[tuple[MovedFact, Labels]] = [(query, [*outer, "row", "width"]), (key, [*outer, "column", "width"])]
    mask = call.argument(3, "attn_mask")
    if isinstance(mask, Node):
        own = call.fact(mask)
        scores.append((own, [*outer, "row", "column"][len(outer) + 2 - len(own.dims) :]))
    found = call.combined(scores, [*outer, "row", "column"])
    if call.argument(5, "is_causal", False) and not call.without_order:
        what = "causal attention compares the indices of tokens"
        found = MovedFact((*found.dims[:-2], still(found.dims[-2], what), still(found.dims[-1], what)))
    return call.combined(
        [(found, [*outer, "row", "column"]), (value, [*outer, "column", "out"])], [*outer, "row", "out"]
    )


def _with_repeated_heads(query: MovedFact, fact: MovedFact) -> MovedFact:
    """Keys or values with each head as often as queries share it."""
    dim = len(fact.dims) - 3
    if size(query.dims[dim]) is size(fact.dims[dim]):
        return fact
    still(fact.dims[dim], "the heads of keys move")
    return fact.with_dim(dim, still(query.dims[dim], "the heads of queries move"))
