"""Mutants of the rules for matrix products and einsum."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "contraction",
    M(
        "sum_of_infinite_terms",
        "any(($not_finite($a, $o) for $o in $operands))",
        "False",
        "matmul",
        "einsum",
    ),
    M(
        "constant_that_masks",
        "$may_mask($operand.$fact.$known) or ($operand.$node is not None and $a.$may_mask($operand.$node))",
        "$may_mask($operand.$fact.$known)",
        "matmul",
        "linear",
        "addmm",
    ),
    M(
        "one_zero_makes_the_sum_zero",
        "$zero.all(axis=$summed)",
        "$zero.any(axis=$summed)",
        "matmul",
        "einsum",
        quick=True,
    ),
    M(
        "lowest_level_of_a_sum_with_zeros",
        "($dependence.max(axis=$summed), $zero.all(axis=$summed))",
        "($dependence.min(axis=$summed), $zero.all(axis=$summed))",
        "matmul",
        "einsum",
    ),
    M(
        "zeros_under_the_own_move",
        "$zeros($call, $o, $target_moves($o, $moves))",
        "$zeros($call, $o, $o.$fact.$moves)",
        program="known_zeros_of_an_operand_retargeted-permutation",
    ),
    M(
        "masked_bias",
        "not $may_mask($product.$ranges) and (not $nonfinite($call, $bias))",
        "True",
        "linear",
        "addmm",
        "baddbmm",
    ),
    M(
        "columns_summed",
        "[*$leading[$batch - ($q - 2):], 'sum', 'column']",
        "[*$leading[$batch - ($q - 2):], 'column', 'sum']",
        "mm",
        "bmm",
        "matmul",
    ),
    M(
        "ellipsis_from_the_left",
        "reversed(range($count if $dots else 0))",
        "range($count if $dots else 0)",
        "einsum",
    ),
    M(
        "once_or_more",
        "sorted(($x for $x in set($letters) if $letters.$count($x) == 1))",
        "sorted(($x for $x in set($letters) if $letters.$count($x) == 1))[::-1]",
        "einsum",
    ),
)
