"""Mutants of the sharing of equal nodes."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "memoization",
    M(
        "shared_whatever_the_dtype",
        "(tuple($value.$shape), $value.$dtype)",
        "tuple($value.$shape)",
        program="dtypes_of_operands",
    ),
    M(
        "shared_whatever_the_constant",
        """
            if self.$constants.$opaque($x):
                return ('opaque', $form($x), $_number)
            return ('constant', $x.$name)
        """,
        """
            if self.$constants.$opaque($x):
                return ('opaque', $form($x), $_number)
            return ('constant', $form($x))
        """,
        program="values_of_constants",
    ),
    M(
        "shared_whatever_the_type",
        "(type($x).__name__, repr($x) if isinstance($x, float) else $x)",
        "$x",
        program="whole_and_boolean_literals",
    ),
    M(
        "shared_whatever_the_sign",
        "repr($x) if isinstance($x, float) else $x",
        "$x",
        program="signed_zeros",
    ),
    M(
        "weight_shared_with_given",
        "('opaque', $form($x), $_number)",
        "('tensor', $form($x), $_number)",
        program="weight_and_given",
    ),
    M(
        "shared_whatever_the_options",
        "self.$argument(tuple(sorted($node.kwargs.items())), $facts)",
        "None",
        program="options",
    ),
    M(
        "shared_whatever_the_operator",
        "($node.$target, $form($node), $node in self.$constants, *$arguments)",
        "($form($node), $node in self.$constants, *$arguments)",
        program="operators",
    ),
    M(
        "shared_whatever_the_level",
        "($_shape, $_moves, $_level_shape, $fact.$dependence.tobytes(), $_known, $_among, $_rows)",
        "($_shape, $_moves, $_level_shape, $_known, $_among, $_rows)",
        program="levels",
    ),
    M(
        "shared_whatever_the_moves",
        "($_shape, tuple(map(id, $fact.$moves)), $_level_shape, $_level, $_known, $_among, $_rows)",
        "($_shape, $_level_shape, $_level, $_known, $_among, $_rows)",
        program="moves",
    ),
    M(
        "shared_whatever_is_known",
        "$known and ($key($known.$low), $known.$low is $known.$high or $key($known.$high))",
        "None",
        program="known_values",
    ),
    M(
        "shared_whatever_the_value",
        "($key($known.$low), $known.$low is $known.$high or $key($known.$high))",
        "($known.$low.shape,)",
        program="known_values",
    ),
)
