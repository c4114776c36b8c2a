"""Mutants of the rules for pointwise operators."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.pointwise.pointwise",
        M(
            "one_operand_agrees",
            "same = conjunction(*(fact.same for fact in operands.facts))",
            "same = disjunction(*(fact.same for fact in operands.facts))",
            program="product with all tokens",
            quick=True,
        ),
        M(
            "operand_that_is_not_chosen",
            "conjunction(implication(test, chosen.same), implication(~test, other.same))",
            "implication(test, chosen.same)",
            program="first tokens only",
            quick=True,
        ),
        M(
            "condition_that_differs",
            "conjunction(condition.same, chosen.same, other.same)",
            "conjunction(chosen.same, other.same)",
            program="chosen by later tokens",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.pointwise.value_ranges",
        M(
            "larger_of_a_hidden_one",
            "Ranges(a.hidden & b.hidden, zero, a.unbounded | b.unbounded, _low(a, b))",
            "Ranges(a.hidden | b.hidden, zero, a.unbounded | b.unbounded, _low(a, b))",
            program="scores clamped above",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.pointwise.known_values",
        M(
            "integers_that_wrap",
            "common not in INTEGERS or all(fits(call.context, as_integer(x), sizes, common) for x in values)",
            "True",
            program="number that wraps",
            quick=True,
        ),
        M(
            "numbers_in_another_dtype",
            "torch.full($_sizes, number, dtype=fact.dtype)",
            "torch.full($_sizes, number, dtype=torch.float64)",
            program="number of float32",
            quick=True,
        ),
    ),
]
