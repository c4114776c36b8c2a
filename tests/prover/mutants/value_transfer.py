"""Mutants of the arithmetic of masks."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
BRANCHES = ("masked_fill.Scalar", "where.self", "where.ScalarOther", "where.ScalarSelf")
MUTANTS = mutants_of(
    "value_transfer",
    M(
        "low_plus_large",
        "$low & ($any_masked | ~$large)",
        "$low",
        "add.Tensor",
    ),
    M(
        "low_and_masked_has_a_bound",
        "($any_masked & ~$low, reduce(np.add, $values) + sum($literals), $_low)",
        "($any_masked, reduce(np.add, $values) + sum($literals), $_low)",
        program="softmax_of_a_row_that_data_and_a_mask_hide",
    ),
    M(
        "anything_taken_from_low",
        "$knowns[0].$at_most_ordinary & $taken",
        "$knowns[0].$at_most_ordinary",
        program="low_less_low",
    ),
    M(
        "large_taken_from_low",
        "$knowns[0].$at_most_ordinary & $taken & ~$large",
        "$knowns[0].$at_most_ordinary & $taken",
        "sub.Tensor",
    ),
    M(
        "low_times_large",
        """
            $keeps, $bound, $stays = $scaled($a, $name, $knowns, $masked, $values, $literals)
            $stays = $stays & ~$large
        """,
        "$keeps, $bound, $stays = $scaled($a, $name, $knowns, $masked, $values, $literals)",
        "mul.Tensor",
        "div.Tensor",
    ),
    M(
        "low_times_anything",
        "$low[$place] & $sure & (np.abs($factor) < np.inf)",
        "$low[$place]",
        "mul.Tensor",
        "div.Tensor",
    ),
    M(
        "low_beside_unsure",
        "$stays & ~$unsure & $dtype.is_floating_point",
        "$stays & $dtype.is_floating_point",
        program="low_and_unsure",
    ),
    M(
        "low_passes_for_ordinary",
        "$unsure | $large | $any_masked | $low",
        "$unsure | $large | $any_masked",
        "neg",
        "sub.Tensor",
        "maximum",
    ),
    M(
        "any_slope_is_tame",
        "$name in $TAMING and all(($x > 0 for $x in $literals))",
        "$name in $TAMING",
        program="softplus_of_negative_slope",
    ),
    M(
        "exponential_of_low",
        "($knowns[0].$masking, 0)",
        "($knowns[0].$open_below, 0)",
        "exp",
        quick=True,
    ),
    M(
        "whole_numbers_are_small",
        "$name in $WHOLE and $dtype is not torch.bool",
        "False",
        program="mask_of_whole_numbers_by_multiplication",
    ),
    M(
        "next_to_nothing_is_a_number",
        "$large = $large | $small($divisor($a)).any()",
        "pass",
        program="division_by_next_to_nothing",
    ),
    M(
        "zero_times_infinity",
        "$one_is(lambda $v: $v == 0) & ~$infinite",
        "$one_is(lambda $v: $v == 0)",
        "mul.Tensor",
        quick=True,
    ),
    M(
        "infinity_minus_infinity",
        "$one_is(lambda $v: $v == -np.inf) & ~$positive",
        "$one_is(lambda $v: $v == -np.inf)",
        program="infinity_less_infinity",
    ),
    M(
        "or_of_integers",
        """
            if $name in $OR and $boolean:
                return ($one_is(lambda $v: $v != 0), True)
        """,
        """
            if $name in $OR:
                return ($one_is(lambda $v: $v != 0), True)
        """,
        "bitwise_or.Tensor",
    ),
    M(
        "divided_by_zero",
        "$large = $large | $knowns[1].$exact & $small($knowns[1].$value)",
        "pass",
        "div.Tensor",
    ),
    M(
        "literal_not_added",
        "reduce(np.add, $values) + sum($literals)",
        "reduce(np.add, $values)",
        "add.Tensor",
    ),
    M(
        "alpha_ignored",
        "$a.$node.kwargs.get('alpha', 1) == 1 and len($a.$args) < 3",
        "len($a.$args) < 3",
        "add.Tensor",
    ),
    M(
        "alpha_ignored_at_minus_infinity",
        "$name == 'add' and len($knowns) > 1 and ($a.$node.kwargs.get('alpha', 1) == 1)",
        "$name == 'add' and len($knowns) > 1",
        "add.Tensor",
    ),
    M(
        "factor_not_known",
        "$knowns[1 - $place].$exact & ($factor > 0)",
        "$factor >= 0",
        "mul.Tensor",
        "div.Tensor",
    ),
    M(
        "unsure_plus_masked",
        "$keeps & ($bound <= -$threshold($dtype)) & ~$unsure",
        "$keeps & ($bound <= -$threshold($dtype))",
        "add.Tensor",
    ),
    M(
        "bound_no_longer_a_mask",
        "$keeps & ($bound <= -$threshold($dtype))",
        "$keeps",
        "mul.Tensor",
        "add.Tensor",
    ),
    M(
        "masked_passes_for_ordinary",
        "$unsure | $large | $any_masked",
        "$unsure | $large",
        "sub.Tensor",
        "mul.Tensor",
        "neg",
    ),
    M(
        "large_passes_for_ordinary",
        "$unsure | $large | $any_masked",
        "$unsure | $any_masked",
        "add.Tensor",
        "mul.Tensor",
    ),
    M(
        "masked_beside_a_score",
        "($masked[0] & $masked[1], np.maximum(*$values))",
        "($masked[0] | $masked[1], np.minimum(*$values))",
        "maximum",
    ),
    M(
        "larger_of_what_is_high",
        "np.where($high, $RangeKind.$UNBOUNDED, $status).astype(np.uint8)",
        "$status.astype(np.uint8)",
        "maximum",
    ),
)
