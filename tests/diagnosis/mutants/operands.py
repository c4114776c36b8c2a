"""Mutants of the operands with labelled dimensions."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "operands",
    M(
        "symmetric_somewhere",
        "$symmetric is not None and $symmetric.all()",
        "$symmetric is not None and $symmetric.any()",
        "add.Tensor",
    ),
    M(
        "asymmetric_kept",
        "$compress(np.where($symmetric, $fact.$dependence, $ALWAYS))",
        "$fact.$dependence",
        "add.Tensor",
        "mul.Tensor",
    ),
    M(
        "values_not_compared",
        "$agree & $same($carry($ends, $target, $fact.$shape, $g), $ends)",
        "$agree",
        "add.Tensor",
        quick=True,
    ),
    M(
        "image_not_known",
        "($known.$low, $known.$high)[:1 if $known.$low is $known.$high else 2]",
        "($known.$high,)",
        "add.Tensor",
        "mul.Tensor",
        "maximum",
    ),
    M(
        "one_generator_of_many",
        "$generators_of($target) or $generators_of($fact.$moves)",
        "2",
        "add.Tensor",
        "mul.Tensor",
    ),
    M(
        "constant_along_everything",
        "$s == 1 and $n > 1",
        "$n > 1",
        "embedding",
    ),
    M(
        "large_constant_passes_for_ordinary",
        "$unsure($fact) if $a.$may_mask($node) else $fact",
        "$fact",
        program="mask_joined_from_a_large_constant-causal",
    ),
    M(
        "operand_that_moves_otherwise",
        "$dependences = [$align($settle($a, $o, $moves), $o.$labels, $order) for $o in $operands]",
        "$dependences = [$align($o.$fact.$dependence, $o.$labels, $order) for $o in $operands]",
        "add.Tensor",
        quick=True,
    ),
    M(
        "weights_that_move_otherwise",
        "$dependences = [$align($settle($a, $o, $moves), $o.$labels, $order) for $o in $operands]",
        "$dependences = [$align($o.$fact.$dependence, $o.$labels, $order) for $o in $operands]",
        "layer_norm",
        "batch_norm",
    ),
)
