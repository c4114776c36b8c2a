"""Mutants of the facts about tensors."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

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
        "$both_ends(self.$known.$exactly(0), $moves, self.$shape)",
        "self.$known.$exactly(0)",
        "matmul",
        "einsum",
        "linear",
    ),
    M(
        "nothing_unsure",
        "$ValueRanges.$unbounded(len($fact.$shape))",
        "$ValueRanges.$ordinary(len($fact.$shape))",
        "layer_norm",
        "sum",
        "matmul",
    ),
    M(
        "image_of_another_value",
        "$same & ($carry($ends, $moves, $shape, $g) == $ends)",
        "$same",
        "add.Tensor",
        "where.self",
        "maximum",
        quick=True,
    ),
    M(
        "image_not_known_in_a_result",
        "($known.$low, $known.$high)[:1 if $known.$low is $known.$high else 2]",
        "($known.$low,)",
        "add.Tensor",
        "mul.Tensor",
        "masked_fill.Scalar",
    ),
    M(
        "known_is_never_changed",
        """
            $dependence = np.where($same, $NEVER, $dependence)
            return $Fact($shape, $moves, $compress($dependence), $known.$map($compress))
        """,
        """
            $dependence = np.where($known.$exact, $NEVER, $dependence)
            return $Fact($shape, $moves, $compress($dependence), $known.$map($compress))
        """,
        "add.Tensor",
        "where.self",
    ),
    M(
        "compressed_too_far",
        "$same($array, $first).all()",
        "$same($array, $first).any()",
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
