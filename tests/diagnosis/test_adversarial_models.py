"""Models that break a law in ways that a prover may overlook are not proved; their honest twins are."""

from __future__ import annotations

import pytest

from orderproof import laws
from orderproof.auditing.decide.certificates import certificate_for
from orderproof.auditing.record.context import AuditContext
from orderproof.recheck import recheck
from tests.diagnosis.corpus.attack import Attack, finding_of, name_of_attack, subject_of
from tests.diagnosis.corpus.attacks import ATTACKS
from tests.diagnosis.walking import TOKENS, WIDTH


@pytest.mark.parametrize("attack", ATTACKS, ids=name_of_attack)
def test_model_that_breaks_its_law_is_not_proved(attack: Attack) -> None:
    found = finding_of(attack, attack.broken)
    # An output without rows does not obey the law of rows; it has none to compare.
    without_rows = attack.law == "batch" and "no axis of the output runs over rows" in found.reason
    assert found.verdict in ("refuted", "undecided") or without_rows, found.reason
    assert "error in the prover" not in found.reason


@pytest.mark.parametrize("attack", ATTACKS, ids=name_of_attack)
def test_its_honest_twin_is_proved(attack: Attack) -> None:
    found = finding_of(attack, attack.honest)
    assert found.verdict == "proved", found.reason
    assert found.deviation.float64 is not None
    assert found.deviation.float64 < 1e-12


SOON = ("first_token_before_the_others", "middle_row_of_three")


@pytest.mark.parametrize(
    "attack",
    [pytest.param(a, id=name_of_attack(a), marks=() if a.name in SOON else pytest.mark.slow) for a in ATTACKS],
)
def test_certificates_of_its_honest_twin_hold(attack: Attack) -> None:
    """Of every relation of the law: of a middle row replaced too, and of a twin that does not read its positions."""
    law = laws.find_proved_law(attack.law)
    context = AuditContext(subject_of(attack, attack.honest), TOKENS).in_call_mode(law.call_modes[0])
    assert isinstance(context, AuditContext)
    for relation in law.subrelations(attack.batch):
        for output in context.output_dims:
            made = certificate_for(context, relation, output)
            assert made is not None
            assert recheck(made).law == law.name


def test_output_whose_rows_are_not_those_of_the_batch_has_no_witness() -> None:
    attack = Attack("merged", "batch", lambda x: x.reshape(-1, WIDTH), lambda x: x)
    assert finding_of(attack, attack.broken).verdict == "undecided"
