"""Models that break a law are not proved to obey it; each has a twin without the fault that is proved.

Where the break shows in numbers the verdict is `refuted`, with a witness. Where it does not (a mask of -10000, a
cancellation the prover rightly does not see) it is `undecided`. The twin keeps the suite from passing by
proving nothing.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from orderproof import laws
from tests.auditing.internals import prove_law
from tests.diagnosis.corpus.broken_causality import CAUSALITY
from tests.diagnosis.corpus.broken_order import ORDER
from tests.diagnosis.corpus.pair import Pair, named
from tests.diagnosis.corpus.parts import attend
from tests.diagnosis.walking import Program, examine
from tests.pairs import first_soon

PAIRS = [*ORDER, *CAUSALITY]


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_model_that_breaks_the_law_is_not_proved(pair: Pair) -> None:
    finding = pair.finding(pair.broken, pair.law)
    assert "error in the prover" not in finding.reason
    assert finding.verdict == pair.verdict, finding.reason
    assert finding.proof is None
    assert finding.reason
    if pair.verdict == "refuted":
        assert finding.witness is not None
        assert finding.witness.relative_difference > 1e-5
        assert finding.witness.weights == pair.weights
    else:
        assert finding.witness is None


TWINS = [pair for pair in PAIRS if pair.twin is not None]
SOME = [*TWINS[::3], *TWINS[1::3], *TWINS[2::3]]  # of each file, a third first


@pytest.mark.parametrize("pair", first_soon(SOME, len(TWINS[::3])), ids=named)
def test_its_twin_without_the_fault_is_proved(pair: Pair) -> None:
    assert pair.twin is not None
    finding = pair.finding(pair.twin, pair.twin_law or pair.law)
    assert finding.verdict == "proved", finding.reason
    assert finding.proof is not None
    assert finding.proof.step_count == len(finding.proof.steps) > 0
    assert finding.deviation.float64 is not None
    assert finding.deviation.float64 < 1e-12


@pytest.mark.parametrize("law", ["permutation", "causal"])
def test_dropout_is_never_proved(law: str) -> None:
    for function in (
        lambda x: F.dropout(x, 0.5, training=True),
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, is_causal=True),
    ):
        (finding,) = prove_law(examine(Program(function)), laws.find_proved_law(law))
        assert finding.verdict in ("refuted", "undecided")
        assert "error in the prover" not in finding.reason


def test_the_same_random_numbers_are_a_premise_and_differ_from_token_to_token() -> None:
    context = examine(Program(lambda x: x + torch.rand(x.shape[1], 1)))
    (causal,) = prove_law(context, laws.find_proved_law("causal"))
    assert causal.verdict == "proved"
    assert any("the same random numbers in both runs: rand" in text for text in causal.scope.assumptions)
    (permutation,) = prove_law(context, laws.find_proved_law("permutation"))
    assert permutation.verdict in ("refuted", "undecided")
    assert "error in the prover" not in permutation.reason


def test_random_operator_that_draws_nothing_is_proved() -> None:
    (finding,) = prove_law(
        examine(Program(lambda x: F.dropout(attend(x), 0.5, training=False))), laws.find_proved_law("permutation")
    )
    assert finding.verdict == "proved"
