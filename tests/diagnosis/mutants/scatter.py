"""Mutants of the rules that read and write whole lines."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "scatter",
    M(
        "places_of_shorter_lines",
        "$among is None or $among.$dim != $dim or $among.$sure.$shape[$dim] != $made.$shape[$dim]",
        "$among is None or $among.$dim != $dim",
        program="largest_of_one_entry-causal",
    ),
    M(
        "index_forgotten",
        "[$operand($a, $a.$args[0], $labels, 0), $operand($a, $index, $line, 2)]",
        "[$operand($a, $a.$args[0], $labels, 0)]",
        "scatter.value",
    ),
    M(
        "source_read_at_its_own_place",
        "$operand($a, $source, [$_source if $d != $dim else 'source' for $d, $x in enumerate($labels)], 3)",
        "$operand($a, $source, $labels, 3)",
        "scatter.src",
        "scatter_add",
    ),
    M(
        "lines_not_covered",
        "any($shape_of($n)[$d] != $fact.$shape[$d] for $n in $written for $d in range($rank) if $d != $dim)",
        "False",
        "scatter.value",
        "scatter.src",
    ),
)
