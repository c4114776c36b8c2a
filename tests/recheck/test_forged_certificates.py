"""Certificates forged by hand, each of a false theorem: the rechecker must refuse all of them.

Random corruption alters the claims of a true proof. A forger writes the graph too, and picks operators whose check is
weaker than their lemma.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from orderproof.diagnosis.certificate import digest, graph_fingerprint
from orderproof.errors import CertificateError
from orderproof.recheck import FINITE_SCORES_ASSUMPTION, RecheckResult, recheck
from orderproof.recheck.assumptions import REAL_NUMBERS

Step = dict[str, Any]
TOKENS = 3
MINUS_INFINITY = {"float": "-inf"}
STILL, SWAPPED = "identity", [[1, 0, 2], [1, 2, 0]]
CODES = {"permutation": "OP101", "causal": "OP201", "packing": "OP203"}


def array(values: list[Any], *shape: int) -> dict[str, Any]:
    return {"shape": list(shape), "runs": [[v, 1] for v in values]}


def same(value: Any, rank: int) -> dict[str, Any]:
    return array([value], *([1] * rank))


def upto(rank: int, dim: int) -> dict[str, Any]:
    """Token i depends on the tokens up to i."""
    return array([*range(TOKENS)], *(TOKENS if d == dim else 1 for d in range(rank)))


def fact(moves: list[Any], level: Any = -1, low: Any = None, high: Any = None) -> dict[str, Any]:
    """A fact with these ends of its values; ordinary ones if they are missing."""
    level = same(level, len(moves)) if isinstance(level, int) else level
    values = None if high is None else {"low": same(low, len(moves)), "high": same(high, len(moves))}
    return {"moves": moves, "dependence": level, "values": values}


def step(
    node: str,
    operator: str,
    args: list[Any],
    shape: list[int],
    claimed: Any,
    lemma: str,
    kind: str = "float32",
    **kwargs: Any,
) -> Step:
    operands: list[Any] = [{"node": x[1:]} if isinstance(x, str) and x[:1] == "%" else x for x in args]
    operator = operator if operator == "input" else f"aten.{operator}"
    return {
        "node": node, "operator": operator, "args": operands, "kwargs": kwargs, "shape": shape, "dtype": kind,
        "lemma": lemma, "fact": claimed,
    }  # fmt: skip


def checked(
    law: str, steps: list[Step], dims: list[list[int]], axis: int, *, tokens: int = TOKENS, **other: Any
) -> RecheckResult:
    """The result of the rechecker for a proof: tokens of x along an axis, the last step is the output."""
    generators = {2: [[1, 0]], 3: SWAPPED}[tokens] if law == "permutation" else []
    made = {
        "certificate": 4, "law": law, "code": CODES[law], "family": "permutation" if generators else "independence",
        "relation": {"tokens": tokens, "generators": generators, "last_only": False},
        "output": {"name": "output", "node": steps[-1]["node"], "dims": dims}, "inputs": {"x": axis},
        "subject": "forged", "weights": "all", "assumptions": [REAL_NUMBERS, FINITE_SCORES_ASSUMPTION],
        "values": {}, "steps": steps, **other,
    }  # fmt: skip
    made["graph"] = graph_fingerprint(steps)
    made["digest"] = digest(made)
    return recheck(json.loads(json.dumps(made)))


MOVED = step("x", "input", [], [2, 3, 4], fact([STILL, SWAPPED, STILL]), "given")
SEEN = step("x", "input", [], [2, 3, 4], fact([STILL] * 3, upto(3, 1)), "given")
INDEX = step(
    "i", "zeros.default", [[2, 1, 1]], [2, 1, 1], fact([STILL] * 3), "same_in_both_runs", "int64",
    dtype={"dtype": "int64"},
)  # fmt: skip
LATE = fact([STILL] * 3, TOKENS - 1)
MASKED = fact([STILL] * 3, -1, -1.1e9, -1e9)["values"]
MEAN = step("k", "mean.dim", ["%x", [1], True], [2, 1, 4], LATE, "reduction_invariant")


def gather() -> RecheckResult:
    """The first token, claimed to be a sum over all."""
    read = step("g", "gather.default", ["%x", 2, "%i"], [2, 1, 1], fact([STILL] * 3), "lookup_equivariant")
    return checked("permutation", [MOVED, INDEX, read], [], 1)


def scatter() -> RecheckResult:
    """A write into the first token alone."""
    claimed = fact([STILL, SWAPPED, STILL])
    write = step("g", "scatter.value", ["%x", 2, "%i", 5.0], [2, 3, 4], claimed, "dense_dependence")
    return checked("permutation", [MOVED, INDEX, write], [[1, 0]], 1)


def bits() -> RecheckResult:
    """Two tokens read as one longer number."""
    x = step("x", "input", [], [2, 4, 2], fact([STILL, STILL, [[1, 0]]]), "given")
    read = step(
        "g",
        "view.dtype",
        ["%x", {"dtype": "int64"}],
        [2, 4, 1],
        fact([STILL] * 3),
        "movement_equivariant",
        "int64",
    )
    return checked("permutation", [x, read], [], 2, tokens=2)


def like_steps() -> RecheckResult:
    """Two values with equal facts, claimed to be equal: their difference is not zero."""
    steps = [SEEN, MEAN]
    for node, operator, operand in (("a", "relu", "%k"), ("b", "tanh", "%k"), ("c", "neg", "%a"), ("d", "neg", "%b")):
        steps.append(step(node, f"{operator}.default", [operand], [2, 1, 4], LATE, "pointwise_equivariant"))
    nothing = fact([STILL] * 3, -1, 0.0, 0.0)
    steps.append(step("e", "sub.Tensor", ["%c", "%d"], [2, 1, 4], nothing, "pointwise_equivariant"))
    steps.append(step("f", "add.Tensor", ["%x", "%e"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"))
    return checked("causal", steps, [[1, 0]], 1)


def like_steps_joined() -> RecheckResult:
    """Two such values side by side, claimed to be uniform along their line."""
    still = fact([STILL] * 3)
    mean = MEAN | {"fact": still, "shape": [2, 1, 4]}
    steps = [MOVED, mean]
    for node, operator, operand in (("a", "relu", "%k"), ("b", "tanh", "%k"), ("c", "neg", "%a"), ("d", "neg", "%b")):
        steps.append(step(node, f"{operator}.default", [operand], [2, 1, 4], still, "pointwise_equivariant"))
    three = [{"node": n} for n in "cdd"]
    free = fact([STILL, "uniform", STILL])
    steps.append(step("e", "cat.default", [three, 1], [2, 3, 4], free, "movement_equivariant"))
    steps.append(step("f", "add.Tensor", ["%x", "%e"], [2, 3, 4], MOVED["fact"], "pointwise_equivariant"))
    return checked("permutation", steps, [[1, 0]], 1)


def pooled() -> RecheckResult:
    """Means over windows, divided by a negative number."""
    x = step("x", "input", [], [2, 1, 3, 4], fact([STILL] * 4, upto(4, 2)), "given")
    args = ["%x", [3, 1], [1, 1], [1, 0], False, True, -3]
    return checked(
        "causal",
        [x, step("g", "avg_pool2d.default", args, [2, 1, 3, 4], fact([STILL] * 4), "scan_dependence")],
        [[2, 0]],
        2,
    )


def ellipsis() -> RecheckResult:
    """A sum over tokens, whose label is before the ellipsis."""
    ones = step("a", "ones.default", [[3, 3, 4]], [3, 3, 4], fact(["uniform"] * 3), "same_in_both_runs")
    x = step("x", "input", [], [3, 4], fact([STILL] * 2, upto(2, 0)), "given")
    equation = ["i...,i...->...", [{"node": "a"}, {"node": "x"}]]
    summed = step("g", "einsum.default", equation, [3, 4], x["fact"], "contraction_equivariant")
    return checked("causal", [ones, x, summed], [[0, 0]], 0)


def narrow() -> RecheckResult:
    """A mask in a type too narrow for it: what comes out is anything, not zero."""
    masked = fact([STILL] * 3, TOKENS - 1, MINUS_INFINITY, -1e9)
    steps = [
        SEEN,
        MEAN,
        step("a", "sub.Tensor", ["%k", 1.1e9], [2, 1, 4], masked, "pointwise_equivariant"),
        step(
            "b", "_to_copy.default", ["%a"], [2, 1, 4], fact([STILL] * 3, -1, 0, 0), "pointwise_equivariant", "int8",
            dtype={"dtype": "int8"},
        ),
        step("f", "add.Tensor", ["%x", "%b"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"),
    ]  # fmt: skip
    return checked("causal", steps, [[1, 0]], 1)


def quotient() -> RecheckResult:
    """A mask divided by a number that may be -inf, claimed to be at most ordinary: divided by -1 it is large."""
    low = fact([STILL] * 3, TOKENS - 1, MINUS_INFINITY, 1)
    positive = step("c", "gt.Scalar", ["%k", 0.0], [2, 1, 4], LATE, "pointwise_equivariant", "bool")
    infinite = {"float": "-inf"}
    steps = [
        SEEN,
        MEAN,
        step("a", "sub.Tensor", ["%k", 1e9], [2, 1, 4], LATE | {"values": MASKED}, "pointwise_equivariant"),
        positive,
        step("d", "masked_fill.Scalar", ["%k", "%c", infinite], [2, 1, 4], low, "pointwise_equivariant"),
        step("q", "div.Tensor", ["%a", "%d"], [2, 1, 4], low, "pointwise_equivariant"),
        step("f", "relu.default", ["%x"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"),
    ]
    return checked("causal", steps, [[1, 0]], 1)


def memory() -> RecheckResult:
    """The memory of a transposed tensor, read as if it lay in the order of its dimensions."""
    x = step("x", "input", [], [3, 4], fact([SWAPPED, STILL]), "given")
    turned = step("t", "transpose.int", ["%x", 0, 1], [4, 3], fact([STILL, SWAPPED]), "movement_equivariant")
    read = step("s", "as_strided.default", ["%t", [4, 3], [3, 1]], [4, 3], turned["fact"], "movement_equivariant")
    return checked("permutation", [x, turned, read], [[1, 0]], 0)


def beyond() -> RecheckResult:
    """The last token, read in the memory behind the first."""
    first = fact([STILL] * 3, 0)
    steps = [
        SEEN,
        step("s", "slice.Tensor", ["%x", 1, 0, 1], [2, 1, 4], first, "movement_equivariant"),
        step("m", "as_strided.default", ["%s", [2, 1, 4], [12, 4, 1], 8], [2, 1, 4], first, "pure_function_of_unmoved"),
        step("f", "add.Tensor", ["%x", "%m"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"),
    ]
    return checked("causal", steps, [[1, 0]], 1)


def grown() -> RecheckResult:
    """Uninitialized memory."""
    still = fact([STILL] * 2)
    steps = [
        step("x", "input", [], [3, 4], fact([STILL] * 2, upto(2, 0)), "given"),
        step("z", "zeros.default", [[3, 4]], [3, 4], fact(["uniform"] * 2), "same_in_both_runs"),
        step("s", "resize.default", ["%z", [30, 4]], [30, 4], still, "pure_function_of_unmoved"),
        step("g", "slice.Tensor", ["%s", 0, 20, 23], [3, 4], still, "movement_equivariant"),
    ]
    return checked("causal", steps, [[0, 0]], 0)


def creeping() -> RecheckResult:
    """A mask claimed to be a little lower at each step, until a thousandth of it would be a mask."""
    bound, shape = -1e9, [2, 1, 4]
    steps = [SEEN, MEAN]
    steps.append(
        step(
            "m0",
            "sub.Tensor",
            ["%k", 1e9],
            shape,
            fact([STILL] * 3, TOKENS - 1, MINUS_INFINITY, bound),
            "pointwise_equivariant",
        )
    )
    for k in range(1, 10):
        bound /= 0.9991
        claimed = fact([STILL] * 3, TOKENS - 1, MINUS_INFINITY, bound)
        steps.append(step(f"m{k}", "alias.default", [f"%m{k - 1}"], shape, claimed, "pointwise_equivariant"))
    return checked("causal", steps, [[1, 0]], 1)


def selection_of(written: Step, steps: list[Step]) -> RecheckResult:
    """The choice of a later token wherever the claimed written value is missing."""
    kept = step(
        "w", "eq.Scalar", ["%z", 0.0], [2, 3, 4], fact([STILL] * 3, -1, True, True), "pointwise_equivariant", "bool"
    )
    end = step("o", "where.ScalarSelf", ["%w", 0.0, "%k"], [2, 3, 4], fact([STILL] * 3), "pointwise_equivariant")
    return checked("causal", [SEEN, MEAN, *steps, written, kept, end], [[1, 0]], 1)


ZERO = fact([STILL] * 3, -1, 0.0, 0.0)
ONES = step("n", "ones.default", [[2, 3, 4]], [2, 3, 4], fact([STILL] * 3), "same_in_both_runs")


def line_of_one() -> RecheckResult:
    """The index of the largest of one entry, claimed to cover a line of four."""
    claimed = fact([STILL] * 3, upto(3, 1))
    steps = [
        step("s", "slice.Tensor", ["%x", 2, 0, 1], [2, 3, 1], claimed, "movement_equivariant"),
        step("t", "topk.default", ["%s", 1], [[2, 3, 1]] * 2, [claimed] * 2, "scan_dependence", ["float32", "int64"]),
        step("i", "getitem", ["%t", 1], [2, 3, 1], claimed, "part_of_a_tuple", "int64"),
        ONES,
    ]
    steps[2]["operator"] = "getitem"
    return selection_of(step("z", "scatter.value", ["%n", 2, "%i", 0.0], [2, 3, 4], ZERO, "dense_dependence"), steps)


def places_given() -> RecheckResult:
    """Indices that are an input of the relation, claimed to be those that were computed."""
    still, moved = fact([STILL] * 2), fact([STILL, SWAPPED])
    number = step("n", "ones.default", [[2, 3]], [2, 3], still, "same_in_both_runs")
    largest = step("t", "topk.default", ["%n", 3], [[2, 3]] * 2, [still] * 2, "same_in_both_runs", ["float32", "int64"])
    part = step("p", "getitem", ["%t", 1], [2, 3], still, "part_of_a_tuple", "int64")
    part["operator"] = "getitem"
    start = step("x", "_to_copy.default", ["%p"], [2, 3], moved, "given", "int64", dtype={"dtype": "int64"})
    zero = fact([STILL] * 2, -1, 0.0, 0.0)
    # The write reads indices that change; only the claimed coverage would make it pass.
    return checked(
        "causal",
        [number, largest, part, start | {"fact": fact([STILL] * 2, upto(2, 1))},
         step("z", "scatter.value", ["%n", 1, "%x", 0.0], [2, 3], zero, "dense_dependence")],
        [[1, 0]], 1,
    )  # fmt: skip


def border() -> RecheckResult:
    """The maximum of a window of padding only (-inf), times zero: NaN, claimed to be zero."""
    x = step("x", "input", [], [3, 1, 2], fact([STILL] * 3, upto(3, 0)), "given")
    args = ["%x", [2], [1], [1], [3]]
    places = [
        step("m", "max_pool1d.default", args, [3, 1, 1], LATE, "scan_dependence"),
        step("n", "zeros.default", [[3, 1, 1]], [3, 1, 1], fact(["uniform", STILL, STILL]), "same_in_both_runs"),
        step("z", "mul.Tensor", ["%m", "%n"], [3, 1, 1], ZERO, "pointwise_equivariant"),
    ]
    return checked("causal", [x, *places], [[0, 0]], 0)


def no_number() -> RecheckResult:
    """NaN written into ones: claimed to be ordinary, and zero after a product with zero."""
    none = fact([STILL] * 3)
    steps = [
        ONES,
        step(
            "i",
            "zeros.default",
            [[2, 3, 4]],
            [2, 3, 4],
            fact([STILL] * 3),
            "same_in_both_runs",
            "int64",
            dtype={"dtype": "int64"},
        ),
        step("u", "add.Tensor", ["%n", "%k"], [2, 3, 4], LATE, "pointwise_equivariant"),
        step("q", "full.default", [[2, 3, 4], {"float": "nan"}], [2, 3, 4], none, "same_in_both_runs"),
        step("f", "scatter.src", ["%u", 2, "%i", "%q"], [2, 3, 4], LATE, "dense_dependence"),
        step("o0", "zeros.default", [[2, 3, 4]], [2, 3, 4], fact(["uniform"] * 3), "same_in_both_runs"),
    ]
    return selection_of(step("z", "mul.Tensor", ["%f", "%o0"], [2, 3, 4], ZERO, "pointwise_equivariant"), steps)


def empty_term() -> RecheckResult:
    """A product with a scalar before it: the labels of the terms behind an empty one are their own."""
    one = step("s", "ones.default", [[]], [], fact([]), "same_in_both_runs")
    weights = step("w", "ones.default", [[3, 3]], [3, 3], fact([STILL] * 2), "same_in_both_runs")
    x = step("x", "input", [], [3, 3], fact([SWAPPED, STILL]), "given")
    equation = [",ij,jk->ik", [{"node": "s"}, {"node": "x"}, {"node": "w"}]]
    product = step("g", "einsum.default", equation, [3, 3], fact([STILL] * 2), "contraction_equivariant")
    return checked("permutation", [one, weights, x, product], [], 0)


def large_literal_of_a_pure_function() -> RecheckResult:
    """A large number, claimed to be ordinary, times zero."""
    steps = [SEEN, MEAN, step("a", "add.Tensor", ["%k", 1e30], [2, 1, 4], LATE, "pure_function_of_unmoved")]
    return checked("causal", steps, [[1, 0]], 1)


def end_of_no_slice() -> RecheckResult:
    """The number that ends an unbounded slice, added to a tensor: the sum is claimed to be ordinary."""
    late = fact([STILL] * 3, 2**40)
    steps = [SEEN, MEAN, step("a", "add.Tensor", ["%k", 2**63 - 1], [2, 1, 4], late, "nothing_follows")]
    return checked("causal", steps, [[1, 0]], 1)


FORGERIES = (
    gather, scatter, bits, like_steps, like_steps_joined, pooled, ellipsis, narrow, memory, beyond, grown, quotient,
    creeping, line_of_one, places_given, border, no_number, empty_term, large_literal_of_a_pure_function,
    end_of_no_slice,
)  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda f: str(f.__name__))
def test_a_forged_proof_is_refused_at_its_false_step(forgery: Any) -> None:
    with pytest.raises(CertificateError, match=r"step \d+ .* does not follow"):
        forgery()


def test_an_honest_proof_in_the_same_form_is_accepted() -> None:
    plain = step("r", "relu.default", ["%x"], [2, 3, 4], MOVED["fact"], "pointwise_equivariant")
    found = checked("permutation", [MOVED, plain], [[1, 0]], 1)
    assert found.premises == ("x: 3 tokens along dimension 1",)


def test_tokens_that_are_held_fixed_are_printed() -> None:
    steps = [
        step("x", "input", [], [2, 3, 4], fact([STILL] * 3), "given"),
        step("m", "input", [], [2, 3], fact([STILL, SWAPPED]), "given"),
        step("c", "cumsum.default", ["%x", 1], [2, 3, 4], fact([STILL] * 3), "scan_dependence"),
        step("o", "sum.default", ["%c"], [], fact([]), "reduction_invariant"),
    ]
    found = checked("permutation", steps, [], 1, inputs={"x": None, "m": 1})
    assert found.premises == ("x: the same in both runs", "m: 3 tokens along dimension 1")


def test_a_relation_that_begins_inside_the_graph_is_printed() -> None:
    late = step("x", "cumsum.default", [], [2, 3, 4], fact([STILL, SWAPPED, STILL]), "given")
    assert checked("permutation", [late], [[1, 0]], 1).premises == ("x: 3 tokens along dimension 1, inside the graph",)


def test_the_document_that_is_replaced_is_printed() -> None:
    replaced = [[0, 1, 1]]
    relation = {"tokens": 3, "generators": [], "last_only": False, "replaced": replaced, "unchanged": [[1, 0, 0]]}
    level = array([-1, 0, 0], 1, 3, 1)
    x = step("x", "input", [], [1, 3, 4], fact([STILL] * 3, level), "given")
    found = checked("packing", [x], [[1, 0]], 1, relation=relation)
    assert found.premises[-1] == "replaced: the last document"
