"""Mutants of the rule for elementwise operators."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

BRANCHES = ("masked_fill.Scalar", "where.self", "where.ScalarOther", "where.ScalarSelf")
MUTANTS = mutants_of(
    "pointwise",
    M(
        "first_operand_alone",
        "$Fact($a.$shape, $out_moves, $highest($dependences))",
        "$Fact($a.$shape, $out_moves, $dependences[0])",
        "maximum",
        "atan2",
    ),
    M(
        "the_other_branch",
        "np.where($c.$low != 0, $yes_level, $no_level)",
        "np.where($c.$low != 0, $no_level, $yes_level)",
        *BRANCHES,
        quick=True,
    ),
    M(
        "condition_forgotten",
        "np.where($c.$exact, $highest([$condition_level, $branch]), $_either)",
        "np.where($c.$exact, $branch, $_either)",
        *BRANCHES,
    ),
    M(
        "triangle_without_its_diagonal",
        "$ones.triu($diagonal)",
        "$ones.triu()",
        "triu",
    ),
    M(
        "triangle_the_wrong_way",
        "$_ranges.$with_exact(~$shaped, 0)",
        "$_ranges.$with_exact($shaped, 0)",
        "tril",
    ),
    M(
        "known_by_one_operand",
        "reduce(np.logical_and, [$k.$exact for $k in $knowns])",
        "reduce(np.logical_or, [$k.$exact for $k in $knowns])",
        "add.Tensor",
        "maximum",
    ),
    M(
        "literal_in_its_own_type",
        "torch.tensor($x, dtype=$dtype).item()",
        "$x",
        "masked_fill.Scalar",
    ),
    M(
        "number_given_a_rank",
        "$value.reshape(()) if not $o.$fact.$shape else $value",
        "$value",
        program="eight_bits_added_to_a_number-causal",
    ),
)
