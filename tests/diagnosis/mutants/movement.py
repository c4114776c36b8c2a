"""Mutants of the rules that move dimensions."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "movement",
    M(
        "bits_pass_for_ordinary",
        "$unsure($Fact($fact.$shape, $fact.$moves, $fact.$dependence))",
        "$Fact($fact.$shape, $fact.$moves, $fact.$dependence)",
        program="bits_read_as_whole_numbers_and_back",
    ),
    M(
        "free_by_being_long",
        "$made.$shape[$d] == 1 and $a.$shape[$d] > 1",
        "$a.$shape[$d] > 1",
        "expand",
    ),
    M(
        "split_permutation",
        "not ($part == $line.reshape($_sizes)).all()",
        "False and ($part == $line.reshape($_sizes)).all()",
        "view",
        quick=True,
    ),
    M(
        "one_free_dimension",
        "all(($m is $FREE for $m, $unused in $real))",
        "any(($m is $FREE for $m, $unused in $real))",
        "view",
    ),
    M(
        "known_bits",
        "$unsure($Fact($fact.$shape, $fact.$moves, $fact.$dependence))",
        "$fact",
        "view.dtype",
    ),
    M(
        "not_transposed",
        "$order[$i], $order[$j] = ($order[$j], $order[$i])",
        "$order[$i], $order[$j] = ($order[$i], $order[$j])",
        "swapaxes",
        "transpose.int",
    ),
)
