"""Mutants of the rules for slicewise operators."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "slicewise",
    M(
        "map_read_by_place",
        "{'h', 'w', 'coordinate'}",
        "{'coordinate'}",
        "grid_sampler",
    ),
    M(
        "grid_of_another_map",
        "['n', 'y', 'x', 'coordinate']",
        "['m', 'y', 'x', 'coordinate']",
        "grid_sampler",
    ),
    M(
        "place_that_moves",
        "$label in $placed and $is_moved($move)",
        "False",
        "scatter.src",
        "fft_fft",
        "view_as_complex",
        "index_put",
        quick=True,
    ),
    M(
        "another_dimension_transformed",
        "[$_text if $d in $dims else str($d) for $d in range($rank)]",
        "[str($d) for $d in range($rank)]",
        "fft_fft",
        "_fft_r2c",
    ),
)
