"""No change of a certificate that makes it false is accepted, even if the forger computes the obligations again."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.recheck.theorems.examples import example
from tests.recheck.theorems.mutations import mutated

EXAMPLES = (
    ("causal attention", "causal"), ("pads hidden", "padding"), ("pads hidden", "causal"), ("fused heads", "causal"),
    ("full mask skipped", "padding"), ("two layers", "causal"), ("sink", "causal"), ("experts", "batch"),
    ("positions counted by the mask", "causal"), ("another program for long inputs", "causal"),
    ("causal convolution", "causal"), ("chunks", "causal"),
)  # fmt: skip


def _changed(count: int, seed: int) -> Counter[str]:
    chance, tried = random.Random(seed), Counter[str]()
    accepted = []
    for number in range(count):
        name, law = EXAMPLES[number % len(EXAMPLES)]
        whole = example(name, law)
        assert whole is not None
        if text := mutated(whole, chance, tried):
            accepted.append((number, name, law, text))
    assert not accepted, accepted
    return tried


def test_changes_of_certificates_are_refused_if_they_make_them_false() -> None:
    tried = _changed(42, 1)
    assert tried["changes the claim or breaks a step"] > 25, tried


@pytest.mark.slow
def test_a_thousand_changes_of_certificates_are_refused_if_they_make_them_false() -> None:
    tried = _changed(2400, 0)
    assert tried["changes the claim or breaks a step"] > 1000, tried
