"""Certificates forged by hand, each of a false theorem: a rechecker that accepts one is worth nothing.

Random corruption alters what an honest proof says. A forger writes the graph too, and picks operators whose
check is weaker than their lemma.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from orderproof.errors import CertificateError
from orderproof.prover.certificate import digest, fingerprint
from orderproof.prover.recheck import BOUNDED, Checked, recheck

Step = dict[str, Any]
TOKENS = 3
STILL, SWAPPED = "still", [[1, 0, 2], [1, 2, 0]]
CODES = {"order_blind": "OP101", "causal": "OP201", "packing": "OP203"}


def array(values: list[Any], *shape: int) -> dict[str, Any]:
    return {"shape": list(shape), "runs": [[v, 1] for v in values]}


def same(value: Any, rank: int) -> dict[str, Any]:
    return array([value], *([1] * rank))


def upto(rank: int, dim: int) -> dict[str, Any]:
    """Token i depends on the tokens up to i."""
    return array([*range(TOKENS)], *(TOKENS if d == dim else 1 for d in range(rank)))


def fact(moves: list[Any], level: Any = -1, known: tuple[int, Any] | None = None) -> dict[str, Any]:
    level = same(level, len(moves)) if isinstance(level, int) else level
    said = None if known is None else dict(zip(("status", "value"), (same(x, len(moves)) for x in known), strict=True))
    return {"moves": moves, "level": level, "known": said}


def step(
    node: str,
    operator: str,
    args: list[Any],
    shape: list[int],
    said: Any,
    lemma: str,
    kind: str = "float32",
    **kwargs: Any,
) -> Step:
    given: list[Any] = [{"node": x[1:]} if isinstance(x, str) and x[:1] == "%" else x for x in args]
    operator = operator if operator == "input" else f"aten.{operator}"
    return {
        "node": node, "operator": operator, "args": given, "kwargs": kwargs, "shape": shape, "dtype": kind,
        "lemma": lemma, "fact": said,
    }  # fmt: skip


def checked(
    law: str, steps: list[Step], dims: list[list[int]], axis: int, *, tokens: int = TOKENS, **other: Any
) -> Checked:
    """What the rechecker says of a proof of a law: tokens of x along an axis, the last step the output."""
    generators = {2: [[1, 0]], 3: SWAPPED}[tokens] if law == "order_blind" else []
    made = {
        "certificate": 1, "law": law, "code": CODES[law], "family": "permutation" if generators else "influence",
        "relation": {"tokens": tokens, "generators": generators, "last_only": False},
        "output": {"name": "output", "node": steps[-1]["node"], "dims": dims}, "inputs": {"x": axis},
        "subject": "forged", "weights": "all", "assumptions": [BOUNDED], "values": {}, "steps": steps, **other,
    }  # fmt: skip
    made["graph"] = fingerprint(steps)
    made["digest"] = digest(made)
    return recheck(json.loads(json.dumps(made)))


MOVED = step("x", "input", [], [2, 3, 4], fact([STILL, SWAPPED, STILL]), "given")
SEEN = step("x", "input", [], [2, 3, 4], fact([STILL] * 3, upto(3, 1)), "given")
INDEX = step(
    "i", "zeros.default", [[2, 1, 1]], [2, 1, 1], fact([STILL] * 3), "same_in_both_runs", "int64",
    dtype={"dtype": "int64"},
)  # fmt: skip
LATE = fact([STILL] * 3, TOKENS - 1)
MEAN = step("k", "mean.dim", ["%x", [1], True], [2, 1, 4], LATE, "reduction_invariant")


def gather() -> Checked:
    """The first token, told as a sum over all."""
    read = step("g", "gather.default", ["%x", 2, "%i"], [2, 1, 1], fact([STILL] * 3), "lookup_equivariant")
    return checked("order_blind", [MOVED, INDEX, read], [], 1)


def scatter() -> Checked:
    """A write into the first token alone."""
    said = fact([STILL, SWAPPED, STILL])
    write = step("g", "scatter.value", ["%x", 2, "%i", 5.0], [2, 3, 4], said, "dense_dependence")
    return checked("order_blind", [MOVED, INDEX, write], [[1, 0]], 1)


def bits() -> Checked:
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
    return checked("order_blind", [x, read], [], 2, tokens=2)


def like_steps() -> Checked:
    """Two values of which the same is known, told to be the same value: their difference is no zero."""
    steps = [SEEN, MEAN]
    for node, operator, operand in (("a", "relu", "%k"), ("b", "tanh", "%k"), ("c", "neg", "%a"), ("d", "neg", "%b")):
        steps.append(step(node, f"{operator}.default", [operand], [2, 1, 4], LATE, "pointwise_equivariant"))
    nothing = fact([STILL] * 3, -1, (1, 0.0))
    steps.append(step("e", "sub.Tensor", ["%c", "%d"], [2, 1, 4], nothing, "pointwise_equivariant"))
    steps.append(step("f", "add.Tensor", ["%x", "%e"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"))
    return checked("causal", steps, [[1, 0]], 1)


def like_steps_joined() -> Checked:
    """Two such values side by side, told to be the same along their line: no order enters there."""
    still = fact([STILL] * 3)
    mean = MEAN | {"fact": still, "shape": [2, 1, 4]}
    steps = [MOVED, mean]
    for node, operator, operand in (("a", "relu", "%k"), ("b", "tanh", "%k"), ("c", "neg", "%a"), ("d", "neg", "%b")):
        steps.append(step(node, f"{operator}.default", [operand], [2, 1, 4], still, "pointwise_equivariant"))
    three = [{"node": n} for n in "cdd"]
    free = fact([STILL, "free", STILL])
    steps.append(step("e", "cat.default", [three, 1], [2, 3, 4], free, "movement_equivariant"))
    steps.append(step("f", "add.Tensor", ["%x", "%e"], [2, 3, 4], MOVED["fact"], "pointwise_equivariant"))
    return checked("order_blind", steps, [[1, 0]], 1)


def pooled() -> Checked:
    """Means over windows, divided by a negative number."""
    x = step("x", "input", [], [2, 1, 3, 4], fact([STILL] * 4, upto(4, 2)), "given")
    args = ["%x", [3, 1], [1, 1], [1, 0], False, True, -3]
    return checked(
        "causal",
        [x, step("g", "avg_pool2d.default", args, [2, 1, 3, 4], fact([STILL] * 4), "scan_dependence")],
        [[2, 0]],
        2,
    )


def ellipsis() -> Checked:
    """A sum over tokens, whose label stands before the ellipsis."""
    ones = step("a", "ones.default", [[3, 3, 4]], [3, 3, 4], fact(["free"] * 3), "same_in_both_runs")
    x = step("x", "input", [], [3, 4], fact([STILL] * 2, upto(2, 0)), "given")
    equation = ["i...,i...->...", [{"node": "a"}, {"node": "x"}]]
    summed = step("g", "einsum.default", equation, [3, 4], x["fact"], "contraction_equivariant")
    return checked("causal", [ones, x, summed], [[0, 0]], 0)


def narrow() -> Checked:
    """A mask in a type too narrow for it: what comes out is anything, not zero."""
    masked = fact([STILL] * 3, TOKENS - 1, (2, -1e9))
    steps = [
        SEEN,
        MEAN,
        step("a", "sub.Tensor", ["%k", 1.1e9], [2, 1, 4], masked, "pointwise_equivariant"),
        step(
            "b", "_to_copy.default", ["%a"], [2, 1, 4], fact([STILL] * 3, -1, (1, 0)), "pointwise_equivariant", "int8",
            dtype={"dtype": "int8"},
        ),
        step("f", "add.Tensor", ["%x", "%b"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"),
    ]  # fmt: skip
    return checked("causal", steps, [[1, 0]], 1)


def memory() -> Checked:
    """The memory of a transposed tensor, read as if it lay in the order of its dimensions."""
    x = step("x", "input", [], [3, 4], fact([SWAPPED, STILL]), "given")
    turned = step("t", "transpose.int", ["%x", 0, 1], [4, 3], fact([STILL, SWAPPED]), "movement_equivariant")
    read = step("s", "as_strided.default", ["%t", [4, 3], [3, 1]], [4, 3], turned["fact"], "movement_equivariant")
    return checked("order_blind", [x, turned, read], [[1, 0]], 0)


def beyond() -> Checked:
    """The last token, read in the memory behind the first."""
    first = fact([STILL] * 3, 0)
    steps = [
        SEEN,
        step("s", "slice.Tensor", ["%x", 1, 0, 1], [2, 1, 4], first, "movement_equivariant"),
        step("m", "as_strided.default", ["%s", [2, 1, 4], [12, 4, 1], 8], [2, 1, 4], first, "pure_function_of_unmoved"),
        step("f", "add.Tensor", ["%x", "%m"], [2, 3, 4], SEEN["fact"], "pointwise_equivariant"),
    ]
    return checked("causal", steps, [[1, 0]], 1)


def grown() -> Checked:
    """Memory that nobody wrote to."""
    still = fact([STILL] * 2)
    steps = [
        step("x", "input", [], [3, 4], fact([STILL] * 2, upto(2, 0)), "given"),
        step("z", "zeros.default", [[3, 4]], [3, 4], fact(["free"] * 2), "same_in_both_runs"),
        step("s", "resize.default", ["%z", [30, 4]], [30, 4], still, "pure_function_of_unmoved"),
        step("g", "slice.Tensor", ["%s", 0, 20, 23], [3, 4], still, "movement_equivariant"),
    ]
    return checked("causal", steps, [[0, 0]], 0)


def creeping() -> Checked:
    """A mask told to be a little lower at each step, until a thousandth of it would be a mask."""
    bound, shape = -1e9, [2, 1, 4]
    steps = [SEEN, MEAN]
    steps.append(
        step(
            "m0",
            "sub.Tensor",
            ["%k", 1e9],
            shape,
            fact([STILL] * 3, TOKENS - 1, (2, bound)),
            "pointwise_equivariant",
        )
    )
    for k in range(1, 10):
        bound /= 0.9991
        said = fact([STILL] * 3, TOKENS - 1, (2, bound))
        steps.append(step(f"m{k}", "alias.default", [f"%m{k - 1}"], shape, said, "pointwise_equivariant"))
    return checked("causal", steps, [[1, 0]], 1)


def told_apart(written: Step, steps: list[Step]) -> Checked:
    """What depends on a later token, where the value that is said to be written is not there."""
    kept = step(
        "w", "eq.Scalar", ["%z", 0.0], [2, 3, 4], fact([STILL] * 3, -1, (1, True)), "pointwise_equivariant", "bool"
    )
    end = step("o", "where.ScalarSelf", ["%w", 0.0, "%k"], [2, 3, 4], fact([STILL] * 3), "pointwise_equivariant")
    return checked("causal", [SEEN, MEAN, *steps, written, kept, end], [[1, 0]], 1)


ZERO = fact([STILL] * 3, -1, (1, 0.0))
ONES = step("n", "ones.default", [[2, 3, 4]], [2, 3, 4], fact([STILL] * 3), "same_in_both_runs")


def line_of_one() -> Checked:
    """The place of the largest of one entry, said to be every place of a line of four."""
    said = fact([STILL] * 3, upto(3, 1))
    steps = [
        step("s", "slice.Tensor", ["%x", 2, 0, 1], [2, 3, 1], said, "movement_equivariant"),
        step("t", "topk.default", ["%s", 1], [[2, 3, 1]] * 2, [said] * 2, "scan_dependence", ["float32", "int64"]),
        step("i", "getitem", ["%t", 1], [2, 3, 1], said, "part_of_a_tuple", "int64"),
        ONES,
    ]
    steps[2]["operator"] = "getitem"
    return told_apart(step("z", "scatter.value", ["%n", 2, "%i", 0.0], [2, 3, 4], ZERO, "dense_dependence"), steps)


def places_given() -> Checked:
    """Places that are given, said to be those that were computed."""
    still, moved = fact([STILL] * 2), fact([STILL, SWAPPED])
    number = step("n", "ones.default", [[2, 3]], [2, 3], still, "same_in_both_runs")
    largest = step("t", "topk.default", ["%n", 3], [[2, 3]] * 2, [still] * 2, "same_in_both_runs", ["float32", "int64"])
    part = step("p", "getitem", ["%t", 1], [2, 3], still, "part_of_a_tuple", "int64")
    part["operator"] = "getitem"
    given = step("x", "_to_copy.default", ["%p"], [2, 3], moved, "given", "int64", dtype={"dtype": "int64"})
    zero = fact([STILL] * 2, -1, (1, 0.0))
    # The write itself reads places that move; what it is said to give alone makes it pass.
    return checked(
        "causal",
        [number, largest, part, given | {"fact": fact([STILL] * 2, upto(2, 1))},
         step("z", "scatter.value", ["%n", 1, "%x", 0.0], [2, 3], zero, "dense_dependence")],
        [[1, 0]], 1,
    )  # fmt: skip


def border() -> Checked:
    """The largest of a window of border alone, times zero: no number, and said to be zero."""
    x = step("x", "input", [], [3, 1, 2], fact([STILL] * 3, upto(3, 0)), "given")
    args = ["%x", [2], [1], [1], [3]]
    places = [
        step("m", "max_pool1d.default", args, [3, 1, 1], LATE, "scan_dependence"),
        step("n", "zeros.default", [[3, 1, 1]], [3, 1, 1], fact(["free", STILL, STILL]), "same_in_both_runs"),
        step("z", "mul.Tensor", ["%m", "%n"], [3, 1, 1], ZERO, "pointwise_equivariant"),
    ]
    return checked("causal", [x, *places], [[0, 0]], 0)


def no_number() -> Checked:
    """No number, written into ones: said to be ordinary, and times zero to be zero."""
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
        step("o0", "zeros.default", [[2, 3, 4]], [2, 3, 4], fact(["free"] * 3), "same_in_both_runs"),
    ]
    return told_apart(step("z", "mul.Tensor", ["%f", "%o0"], [2, 3, 4], ZERO, "pointwise_equivariant"), steps)


FORGERIES = (
    gather, scatter, bits, like_steps, like_steps_joined, pooled, ellipsis, narrow, memory, beyond, grown, creeping,
    line_of_one, places_given, border, no_number,
)  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda f: str(f.__name__))
def test_a_forged_proof_is_refused_at_its_false_step(forgery: Any) -> None:
    with pytest.raises(CertificateError, match=r"step \d+ .* does not follow"):
        forgery()


def test_an_honest_proof_in_the_same_form_is_accepted() -> None:
    plain = step("r", "relu.default", ["%x"], [2, 3, 4], MOVED["fact"], "pointwise_equivariant")
    found = checked("order_blind", [MOVED, plain], [[1, 0]], 1)
    assert found.given == ("x: 3 tokens along dimension 1",)


def test_tokens_that_are_held_fixed_are_told() -> None:
    steps = [
        step("x", "input", [], [2, 3, 4], fact([STILL] * 3), "given"),
        step("m", "input", [], [2, 3], fact([STILL, SWAPPED]), "given"),
        step("c", "cumsum.default", ["%x", 1], [2, 3, 4], fact([STILL] * 3), "scan_dependence"),
        step("o", "sum.default", ["%c"], [], fact([]), "reduction_invariant"),
    ]
    found = checked("order_blind", steps, [], 1, inputs={"x": None, "m": 1})
    assert found.given == ("x: the same in both runs", "m: 3 tokens along dimension 1")


def test_a_relation_that_begins_inside_the_graph_is_told() -> None:
    late = step("x", "cumsum.default", [], [2, 3, 4], fact([STILL, SWAPPED, STILL]), "given")
    assert checked("order_blind", [late], [[1, 0]], 1).given == ("x: 3 tokens along dimension 1, inside the graph",)


def test_the_document_that_is_replaced_is_told() -> None:
    replaced = [[0, 1, 1]]
    relation = {"tokens": 3, "generators": [], "last_only": False, "replaced": replaced, "asked": [[1, 0, 0]]}
    level = array([-1, 0, 0], 1, 3, 1)
    x = step("x", "input", [], [1, 3, 4], fact([STILL] * 3, level), "given")
    found = checked("packing", [x], [[1, 0]], 1, relation=relation)
    assert found.given[-1] == "replaced: the last document"
