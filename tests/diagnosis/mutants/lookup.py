"""Mutants of the rules for indexing."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "lookup",
    M(
        "table_that_moves",
        """
            if not $table.$unmoved:
                raise $NothingFollows($_text)
        """,
        """
            if False:
                raise $NothingFollows($_text)
        """,
        "embedding",
    ),
    M(
        "table_that_depends",
        "np.maximum($index.$dependence[..., None], $table.$dependence.max())",
        "$index.$dependence[..., None]",
        "embedding",
        quick=True,
    ),
    M(
        "moved_dimension_read",
        "any(($is_moved($fact.$moves[$d]) for $d in $places))",
        "False",
        "index.Tensor",
    ),
    M(
        "lowest_level_read",
        "$fact.$dependence.max(axis=tuple($places), keepdims=True)",
        "$fact.$dependence.min(axis=tuple($places), keepdims=True)",
        "index.Tensor",
    ),
    M(
        "index_forgotten",
        "np.maximum($before, $wide)",
        "$before",
        "index.Tensor",
    ),
    M(
        "places_in_reverse",
        "np.ravel_multi_index(tuple($wanted), $sizes).reshape(-1)",
        "np.ravel_multi_index(tuple($wanted), $sizes).reshape(-1)[::-1].copy()",
        "index.Tensor",
    ),
    M(
        "moved_dimension_selected",
        """
            if $is_moved($fact.$moves[$dim]):
                raise $NothingFollows($_text)
            return $_read
        """,
        """
            if False:
                raise $NothingFollows($_text)
            return $_read
        """,
        "index_select",
    ),
    M(
        "short_index",
        "any(($index.$shape[$d] != $fact.$shape[$d] for $d in range($rank) if $d != $dim))",
        "False",
        "gather",
    ),
    M(
        "lowest_level_gathered",
        "$read: DependenceArray = $dependence.max(axis=$dim, keepdims=True)",
        "$read: DependenceArray = $dependence.min(axis=$dim, keepdims=True)",
        "gather",
    ),
    M(
        "entries_read_at_an_unknown_index",
        "$fact.$dependence.max(axis=tuple($unknown), keepdims=True)[tuple($at)]",
        "$fact.$dependence.min(axis=tuple($unknown), keepdims=True)[tuple($at)]",
        "index.Tensor",
    ),
)
