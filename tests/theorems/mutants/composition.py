"""Mutants of the rules for tensors made of others."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.composition.concatenation",
        M(
            "part_from_the_start",
            "[at - start] if axes else []",
            "[at] if axes else []",
            program="scan in chunks",
            quick=True,
        ),
        M(
            "parts_that_differ",
            "len({(f.same, f.value, f.hidden, f.zero, f.unbounded, f.low) for _, f in parts}) == 1",
            "True",
            program="windows of one",
            quick=True,
        ),
        M(
            "several_parts_move",
            "len(moving) > 1 or len(dims[moving[0]]) > 1 or not before.is_constant",
            "not before.is_constant",
            program="moved: keys twice",
            quick=True,
        ),
        M(
            "tokens_in_front",
            "before.constant + dims[moving[0]][0].before",
            "before.constant",
            program="moved: tokens between others",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.composition.padding",
        M("padded_on_the_other_side", "at - before", "at", program="causal convolution", quick=True),
        M(
            "cut_tokens",
            "not call.context.proves(conjunction(*(at_most(0, w) for w in own_widths)), ())",
            "False",
            program="moved: padding that cuts tokens",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.composition.replaced_parts",
        M(
            "part_that_leaves",
            "not call.context.proves(conjunction(at_most(0, start), less(start + (extent - 1) * step, size)), ())",
            "False",
            program="index that counts from the end",
            quick=True,
        ),
        M(
            "places_between",
            "conjunction(at_most(start, at), less(at, start + extent * step), equal(remainder(at - start, step), 0))",
            "conjunction(at_most(start, at), less(at, start + extent * step))",
            program="every second overwritten",
            quick=True,
        ),
        M(
            "start_from_the_end",
            "start.is_constant and start.constant < 0",
            "False",
            program="last overwritten",
            quick=True,
        ),
    ),
]
