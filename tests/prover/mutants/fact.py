"""Mutants of the facts about tensors."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "fact",
    M(
        "any_move_agrees",
        "$move is $target or $move is $FREE",
        "True",
        "add.Tensor",
        "matmul",
        quick=True,
    ),
    M(
        "zeros_of_the_first_run",
        "$both_ends(self.$known.$exact & (self.$known.$value == 0), $moves, self.$shape)",
        "self.$known.$exact & (self.$known.$value == 0)",
        "matmul",
        "einsum",
        "linear",
    ),
    M(
        "nothing_unsure",
        "$ValueRanges.$filled($_rank, $RangeKind.$UNBOUNDED)",
        "None",
        "layer_norm",
        "sum",
        "matmul",
    ),
    M(
        "image_of_another_value",
        "$same & ($carry($known.$status, $moves, $shape, $g) == $RangeKind.$EXACT) & ($image == $known.$value)",
        "$same & ($carry($known.$status, $moves, $shape, $g) == $RangeKind.$EXACT)",
        "add.Tensor",
        "where.self",
        "maximum",
        quick=True,
    ),
    M(
        "image_not_known_in_a_result",
        "$same & ($carry($known.$status, $moves, $shape, $g) == $RangeKind.$EXACT)",
        "$same",
        "add.Tensor",
        "mul.Tensor",
        "masked_fill.Scalar",
    ),
    M(
        "known_is_never_changed",
        """
            $dependence = np.where($same, $NEVER, $dependence)
            return $Fact($shape, $moves, $compress($dependence), $ValueRanges($compress($known.$status), $_value))
        """,
        """
            $dependence = np.where($known.$exact, $NEVER, $dependence)
            return $Fact($shape, $moves, $compress($dependence), $ValueRanges($compress($known.$status), $_value))
        """,
        "add.Tensor",
        "where.self",
    ),
    M(
        "compressed_too_far",
        "bool(($array == $first).all())",
        "bool(($array == $first).any())",
        "softmax.int",
        "cumsum",
        "cat",
    ),
    M(
        "carried_back",
        "$move.$indices($generator, $shape[$d])",
        "np.argsort($move.$indices($generator, $shape[$d]))",
        "add.Tensor",
        "clone",
    ),
    M(
        "either_end",
        "$result & $carry($mask, $moves, $shape, $g)",
        "$result | $carry($mask, $moves, $shape, $g)",
        "softmax.int",
        "matmul",
    ),
)
