"""Mutants of which operators are functions of their arguments."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "nondeterminism",
    M(
        "random_is_determined",
        "torch.Tag.nondeterministic_seeded in $_tags and not $switched_off($node)",
        "torch.Tag.nondeterministic_seeded in $_tags and False",
        program="random",
    ),
    M(
        "dropout_in_training",
        "$train is False or bool($p == 0)",
        "True",
        program="dropout",
    ),
)
