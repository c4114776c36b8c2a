"""Mutants of dependence under axis labels."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "axis_labels",
    M(
        "lowest_level_of_a_sum",
        "$dependence = $dependence.max(axis=$summed)",
        "$dependence = $dependence.min(axis=$summed)",
        "matmul",
        "linear",
        "scatter.src",
        "_fft_r2c",
        quick=True,
    ),
    M(
        "never_at_its_first_element",
        "$dependence.$size == 1 and $dependence.flat[0] == $NEVER",
        "$dependence.flat[0] == $NEVER",
        "add.Tensor",
        "maximum",
    ),
    M(
        "lower_of_two_levels",
        "$result = np.maximum($result, $dependence)",
        "$result = np.minimum($result, $dependence)",
        "add.Tensor",
    ),
    M(
        "labels_in_their_own_order",
        "$present != list(range(len($present)))",
        "False",
        "einsum",
    ),
    M(
        "labels_turned_the_other_way",
        "$array.transpose($present)",
        "$array.transpose(np.argsort($present))",
        "einsum",
    ),
    M(
        "broadcast_from_the_left",
        "str($d + $shift) if $size > 1 else ''",
        "str($d) if $size > 1 else ''",
        "add.Tensor",
        "mul.Tensor",
    ),
)
