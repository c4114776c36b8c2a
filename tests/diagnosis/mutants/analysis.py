"""Mutants of the walk over the graph."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "analysis",
    M(
        "pure_function_of_what_moves",
        "not all($f.$unmoved for $f in $facts)",
        "False",
        "sort",
        "argmax",
        "native_group_norm",
        quick=True,
    ),
    M(
        "pure_function_of_the_least",
        "max((int($f.$dependence.max()) for $f in $facts), default=$NEVER)",
        "min((int($f.$dependence.max()) for $f in $facts), default=$NEVER)",
        "native_group_norm",
        "einsum",
        "gather",
    ),
    M(
        "nothing_tainted",
        "not $masked and (not $has_large_number($a.$node)) and (not $is_uninitialised($a.$node))",
        "True",
        "layer_norm",
        "sum",
        quick=True,
    ),
    M(
        "memory_as_it_is_passes_for_ordinary",
        "not $masked and (not $has_large_number($a.$node)) and (not $is_uninitialised($a.$node))",
        "not $masked and (not $has_large_number($a.$node))",
        program="zeros_times_memory_as_it_is",
        quick=True,
    ),
    M(
        "no_rule_tainted",
        "$made if $rule.$lemma in $CAREFUL else $tainted($a, $made)",
        "$made",
        "layer_norm",
        "sum",
    ),
    M(
        "purity_untainted",
        """
            if $pure is None:
                raise
            return $tainted($a, $pure, $pure=True)
        """,
        """
            if $pure is None:
                raise
            return $pure
        """,
        "native_group_norm",
    ),
    M(
        "nothing_follows_untainted",
        "$tainted($a, $each($value, lambda $shape: $still($shape, $ALWAYS)))",
        "$each($value, lambda $shape: $still($shape, $ALWAYS))",
        "slice.Tensor",
    ),
)
