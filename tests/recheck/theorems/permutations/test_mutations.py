"""No change of a certificate about permuted tokens that makes it false is accepted."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.recheck.theorems.permutations.examples import example
from tests.recheck.theorems.permutations.mutations import mutated

EXAMPLES = (
    "attention with a mask of position ids", "grouped heads with a bias of distances", "experts", "norms",
    "places along the width", "shapes", "a branch on the largest position", "attention with a sink",
    "tokens between others",
    "memory written in parts", "median of the tokens", "table of one number", "pooled", "sums over tokens",
    "edges to the token itself", "graph of an identity matrix", "triples of tokens",
    "layers after a table", "fused causal layers after a table",
)  # fmt: skip


def _changed(count: int, seed: int) -> Counter[str]:
    chance, tried = random.Random(seed), Counter[str]()
    accepted = []
    for number in range(count):
        name = EXAMPLES[number % len(EXAMPLES)]
        if text := mutated(example(name), chance, tried):
            accepted.append((number, name, text))
    assert not accepted, accepted
    return tried


def test_changes_of_certificates_are_refused_if_they_make_them_false() -> None:
    tried = _changed(48, 1)
    assert tried["changes the claim or breaks a step"] > 24, tried


@pytest.mark.slow
def test_a_thousand_changes_of_certificates_are_refused_if_they_make_them_false() -> None:
    tried = _changed(2400, 0)
    assert tried["changes the claim or breaks a step"] > 1000, tried
