"""Mutants of the rule for elementwise operators."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

BRANCHES = ("masked_fill.Scalar", "where.self", "where.ScalarOther", "where.ScalarSelf")
MUTANTS = mutants_of(
    "pointwise",
    M(
        "high_branch_is_low",
        "np.where($nowhere_high, $RangeKind.$AT_MOST_ORDINARY, $RangeKind.$UNBOUNDED)",
        "$RangeKind.$AT_MOST_ORDINARY",
        *BRANCHES,
    ),
    M(
        "one_branch_is_not_high",
        "$not_high($yes) & $not_high($no)",
        "$not_high($yes)",
        *BRANCHES,
    ),
    M(
        "first_operand_alone",
        "$Fact($a.$shape, $out_moves, $highest($dependences))",
        "$Fact($a.$shape, $out_moves, $dependences[0])",
        "maximum",
        "atan2",
    ),
    M(
        "the_other_branch",
        "$branch = np.where($true, $yes_level, $no_level)",
        "$branch = np.where($true, $no_level, $yes_level)",
        *BRANCHES,
        quick=True,
    ),
    M(
        "condition_forgotten",
        "np.where($sure, $highest([$condition_level, $branch]), $_either)",
        "np.where($sure, $branch, $_either)",
        *BRANCHES,
    ),
    M(
        "unsure_branch",
        "np.where($risky, $open, $RangeKind.$ORDINARY)",
        "$RangeKind.$ORDINARY",
        *BRANCHES,
    ),
    M(
        "value_of_the_other_branch",
        """
            $kind = np.where($sure, $_kind, $either)
            $value = np.where($sure, np.where($true, $yes.$value, $no.$value), $bound)
        """,
        """
            $kind = np.where($sure, $_kind, $either)
            $value = np.where($sure, np.where($true, $no.$value, $yes.$value), $bound)
        """,
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
        "np.where($shaped, $ranges.$kind, $RangeKind.$EXACT).astype(np.uint8)",
        "np.where($shaped, $RangeKind.$EXACT, $ranges.$kind).astype(np.uint8)",
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
