"""Models that break a law in ways that a prover may overlook are not proved; their honest twins are."""

from __future__ import annotations

import pytest

from tests.diagnosis.corpus.attack import Attack, finding_of, name_of_attack
from tests.diagnosis.corpus.attacks import ATTACKS
from tests.diagnosis.walking import WIDTH
from tests.pairs import first_soon

EVERY_THIRD_FIRST = [*ATTACKS[::3], *ATTACKS[1::3], *ATTACKS[2::3]]


@pytest.mark.parametrize("attack", ATTACKS, ids=name_of_attack)
def test_model_that_breaks_its_law_is_not_proved(attack: Attack) -> None:
    found = finding_of(attack, attack.broken)
    # An output without rows does not obey the law of rows; it has none to compare.
    without_rows = attack.law == "batch" and "no axis of the output runs over rows" in found.reason
    assert found.verdict in ("refuted", "undecided") or without_rows, found.reason
    assert "error in the prover" not in found.reason


@pytest.mark.parametrize("attack", first_soon(EVERY_THIRD_FIRST, len(ATTACKS[::3])), ids=name_of_attack)
def test_its_honest_twin_is_proved(attack: Attack) -> None:
    found = finding_of(attack, attack.honest)
    assert found.verdict == "proved", found.reason
    assert found.deviation.float64 is not None
    assert found.deviation.float64 < 1e-12


def test_output_whose_rows_are_not_those_of_the_batch_has_no_witness() -> None:
    attack = Attack("merged", "batch", lambda x: x.reshape(-1, WIDTH)[1:], lambda x: x)
    assert finding_of(attack, attack.broken).verdict == "undecided"
