"""A branch on which token ids occur is recorded under a stated condition, and no leak through it is proved away."""

from __future__ import annotations

import pytest
import torch

from orderproof import prove
from orderproof.records.audit import Finding
from tests.auditing.token_branch_models import IDS, LAWFUL, LEAKING, NOT_FOLLOWED, Words

LAWS = ("causal", "batch")
REASONS = (
    "control flow depends on data",
    "more than 8 branches",
    "its branches depend on 4 values of tokens, and at most 3 are tried",
    "the model catches an error that recording it raised",
)


def found(kind: type[Words], law: str) -> Finding:
    ids = torch.randint(6, IDS, (2, 7), generator=torch.Generator().manual_seed(1))
    return prove(kind(), law, inputs=(ids,))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", LAWFUL)
def test_a_law_is_proved_for_inputs_that_take_the_branch(kind: type[Words], law: str) -> None:
    finding = found(kind, law)
    assert finding.verdict == "proved", finding.reason
    conditions = [text for text in finding.scope.assumptions if text.startswith("for inputs that take the same branch")]
    assert conditions
    assert all("token_branch_models.py:" in text and "`if " in text for text in conditions)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", LEAKING)
def test_a_leak_through_a_branch_is_shown(kind: type[Words], law: str) -> None:
    finding = found(kind, law)
    assert finding.verdict == "refuted"
    assert finding.reason.startswith("a branch depends on the tokens: token_branch_models.py:")
    assert finding.witness is not None
    assert finding.deviation.float64 is not None
    assert finding.deviation.float64 > 1e-3


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", NOT_FOLLOWED)
def test_no_other_branch_is_recorded(kind: type[Words], law: str) -> None:
    finding = found(kind, law)
    assert finding.verdict != "proved"
    assert any(reason in finding.reason for reason in REASONS), finding.reason


def test_a_proof_with_a_condition_changes_nothing_in_the_module() -> None:
    model = LAWFUL[0]()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    prove(model, "causal", inputs=(torch.randint(6, IDS, (2, 7)),))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
