"""Mutants of the rules for elements at other places."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.movement.rearrangement",
        M(
            "dimensions_not_exchanged",
            "order[a], order[b] = b, a",
            "order[a], order[b] = a, b",
            program="causal attention",
            quick=True,
        ),
        M(
            "dimensions_in_order",
            "list(reversed(range(call.rank)))",
            "list(range(call.rank))",
            program="moved: all dimensions in reverse",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.movement.parts",
        M(
            "slice_that_leaves_its_tensor",
            "conjunction(at_most(0, first), at_most(first + (size - 1) * step, extent - 1))",
            "conjunction()",
            program="part of a longer row",
            quick=True,
        ),
        M("step_forgotten", "first + at * step", "first + at", program="every second of two rows", quick=True),
        M(
            "start_from_the_end",
            "first.is_constant and first.constant < 0",
            "False",
            program="moved: table of one number",
            quick=True,
        ),
        M(
            "fewer_than_all_tokens",
            "start > axis.before or more.constant < 0",
            "start > axis.before",
            program="moved: sum of all tokens but the last",
            quick=True,
        ),
        M(
            "tokens_by_their_index",
            "still(fact.dims[place], TAKEN_BY_INDEX)",
            "pass",
            program="moved: first of merged tokens",
            quick=True,
        ),
        M("token_in_front", "axis.before - start", "axis.before", program="moved: tokens between others", quick=True),
        M(
            "parts_that_overlap",
            "all(a <= b for a, b in pairwise([0, *ends]))",
            "True",
            program="moved: parts that overlap",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.movement.shifts",
        M(
            "diagonal_of_tokens_and_places",
            "aligned(pair, call.context.equal_sizes)",
            "pair[0]",
            program="moved: diagonal of scores and places",
            quick=True,
        ),
        M(
            "not_reversed",
            "size - 1 - index_along(fact, dim, size)",
            "index_along(fact, dim, size)",
            program="flip",
            quick=True,
        ),
        M(
            "shifted_the_other_way",
            "remainder(at - shift, size.constant)",
            "remainder(at + shift, size.constant)",
            program="features around",
            quick=True,
        ),
        M(
            "reversed_tokens_move",
            "still(fact.dims[int(d)], TAKEN_BY_INDEX)",
            "fact.dims[int(d)]",
            program="moved: reversed",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.movement.repetition",
        M(
            "copies_after_each",
            "(*axes, *copies) if d == dim else axes",
            "(*copies, *axes) if d == dim else axes",
            program="features twice",
            quick=True,
        ),
        M(
            "copies_of_tokens",
            "(*call.operand.dims[dim], *of_axes(copies, Motion.FREE))",
            "(*of_axes(copies, Motion.FREE), *call.operand.dims[dim])",
            program="moved: repeated and halved",
            quick=True,
        ),
    ),
]
