"""The claims about the modules written before they were audited are true, and none is decided otherwise."""

from __future__ import annotations

import pytest

from tests.theorems.unseen.truth import contradicted
from tests.theorems.unseen.verdicts import all_written, verdicts

WRITTEN = all_written()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_runs_agree_with_the_claims_about_a_module(name: str) -> None:
    one = WRITTEN[name]
    assert {law: not contradicted(one, law) for law in one.truth} == one.truth


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_no_claim_is_decided_against_the_truth(name: str) -> None:
    found = list(verdicts(name))
    assert found
    assert not [one for one in found if one.wrong]
