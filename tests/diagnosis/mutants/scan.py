"""Mutants of the rules for scans, sorts and slice writes."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "scan",
    M(
        "places_of_one_too_few",
        "$visible.sum(axis=$dim, keepdims=True) <= $count",
        "$visible.sum(axis=$dim, keepdims=True) <= $count + 1",
        program="largest_too_few",
    ),
    M(
        "places_of_the_smallest",
        "$known is None or not $a.$argument(3, 'largest', True)",
        "$known is None",
        program="smallest_places",
    ),
    M(
        "scan_of_what_moves",
        """
            if $is_moved($fact.$moves[$dim]):
                raise $NothingFollows($_text)
        """,
        """
            if $is_moved($fact.$moves[$dim]):
                pass
        """,
        "cumsum",
        "sort",
        quick=True,
    ),
    M(
        "scan_stays_free",
        "$Fact($fact.$shape, $moves, $fact.$dependence)",
        "$fact",
        "cumsum",
        "topk",
        "sort",
    ),
    M(
        "scan_without_the_past",
        "np.maximum.accumulate($fact.$dependence, axis=$dim)",
        "$fact.$dependence",
        "cumsum",
    ),
    M(
        "sorted_in_place",
        "$fact.$dependence.max(axis=$dim, keepdims=True)",
        "$fact.$dependence",
        "sort",
        "msort",
    ),
    M(
        "places_of_a_set",
        """
            if $name == 'topk':
                $results[1] = $Fact($shapes[1], $moves, $dependence, $among=$_among)
            if $forgets and $several:
                $results[1] = $Fact($shapes[1], $moves, $uniform(len($shapes[1]), $ALWAYS))
        """,
        """
            if $name == 'topk':
                $results[1] = $Fact($shapes[1], $moves, $dependence, $among=$_among)
            if $forgets and $several:
                $results[1] = $Fact($shapes[1], $moves, $dependence)
        """,
        "sort",
        "topk",
    ),
    M(
        "set_that_moves",
        """
            $moves = tuple($STILL if $d == $dim else $m for $d, $m in enumerate($fact.$moves))
            $dependence = $_level
        """,
        """
            $moves = $fact.$moves
            $dependence = $_level
        """,
        "msort",
    ),
)
