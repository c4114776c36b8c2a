"""Every claim has its documented verdict, and each negative control changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from orderproof.claims import Claim, claims, run_claims, select_claims
from orderproof.claims.audit_cache import AuditCache
from orderproof.claims.claim import CheckOutcome
from orderproof.claims.law_check import LawCheck
from orderproof.errors import SubjectError, UsageError
from orderproof.laws.proved.permutation import LAW as PERMUTATION
from orderproof.records.claims import ClaimCheckRecord, ClaimRecord, claim_verdict

CHECKS = [(claim, k) for claim in claims() for k in range(len(claim.checks))]
CHECK_NAMES = [f"{claim.number}-{claim.name}-{k}" for claim, k in CHECKS]
TRAINED_MODEL_FACTORIES = {"bundled_sentence_encoder"}


@pytest.fixture(scope="module")
def audits() -> AuditCache:
    """One cache for all claims, as in one run of the command."""
    return AuditCache()


@pytest.fixture(scope="module")
def found(audits: AuditCache) -> Callable[[int], ClaimRecord]:
    """The record of a claim, computed once."""
    return cache(lambda number: select_claims([number])[0].run(audits))


def test_claims_are_numbered_from_one_and_have_different_names():
    assert [claim.number for claim in claims()] == list(range(1, len(claims()) + 1))
    assert len({claim.name for claim in claims()}) == len(claims())


@pytest.mark.parametrize("claim", claims(), ids=lambda c: c.name)
@pytest.mark.filterwarnings("default")
def test_a_claim_has_its_documented_verdict(claim: Claim, found: Callable[[int], ClaimRecord]):
    record = found(claim.number)
    assert [(g.statement, g.subject, g.verdict) for g in record.checks if not g.matches_expectation] == []
    assert record.verdict == claim.expected_verdict
    assert record.matches_documentation
    assert all(g.subject.endswith(".") and g.evidence for g in record.checks)


def test_of_the_first_eight_only_the_fourth_is_refuted_and_only_the_third_is_shown():
    verdicts = {claim.number: claim.expected_verdict for claim in claims() if claim.number <= 8}
    assert {n for n, v in verdicts.items() if v == "refuted"} == {4}
    assert {n for n, v in verdicts.items() if v == "shown"} == {3}


@pytest.mark.parametrize(("claim", "k"), CHECKS, ids=CHECK_NAMES)
@pytest.mark.filterwarnings("default")
def test_a_negative_control_changes_its_check_and_an_asserted_verdict(claim: Claim, k: int, audits: AuditCache):
    check = claim.with_negative_control(k).checks[k]
    assert check.make_subject is claim.checks[k].negative_control
    record = check.run(audits)
    assert not record.matches_expectation, "the negative control was not detected"
    if check.asserted_by_claim is not None:
        assert claim_verdict([record]) != claim.expected_verdict


@pytest.mark.filterwarnings("default")
def test_two_causal_layers_instead_of_one_refute_the_first_claim():
    (claim,) = select_claims([1])
    found = run_claims([replace(claim, checks=claim.with_negative_control(1).checks[1:2])])
    (record,) = found.claims
    assert (record.verdict, record.documented_verdict, record.matches_documentation, found.exit_code) == (
        "refuted",
        "proved",
        False,
        1,
    )
    assert record.checks[0].witness is not None
    assert record.checks[0].witness.permutation == (1, 0, 2)


@pytest.mark.filterwarnings("default")
def test_the_scores_of_cat_are_printed_for_both_sentences(found: Callable[[int], ClaimRecord]):
    first, second = found(5).checks[2].evidence[:2]
    assert first.startswith("the cat chased the dog: ")
    assert second.startswith("the dog chased the cat: ")
    numbers = [line.partition(": ")[2].split() for line in (first, second)]
    assert numbers[0] != numbers[1]
    assert sorted(numbers[0]) == sorted(numbers[1])


# ---------------------------------------------------------------- the verdict follows from the checks


def check(found: str, asserted: str | None, expected: str = "holds") -> ClaimCheckRecord:
    return ClaimCheckRecord(
        statement="x", subject="y", verdict=found, expected_answer=expected, claimed_answer=asserted
    )


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([check("proved", "holds")], "proved"),
        ([check("refuted", "fails")], "proved"),
        ([check("refuted", "holds")], "refuted"),
        ([check("proved", "fails")], "refuted"),
        ([check("shown", "fails")], "refuted"),
        ([check("proved", "holds"), check("shown", "holds")], "shown"),
        ([check("proved", "holds"), check("undecided", "holds")], "undecided"),
        ([check("refuted", "holds"), check("undecided", "holds")], "refuted"),
        ([check("proved", "holds"), check("refuted", None)], "proved"),
        ([check("proved", None)], "undecided"),
        ([], "undecided"),
    ],
)
def test_a_verdict_follows_from_the_checks(checks: list[ClaimCheckRecord], verdict: str):
    assert claim_verdict(checks) == verdict


def test_a_check_of_an_unavailable_subject_is_undecided_with_a_reason():
    def missing() -> None:
        """A model that is not installed."""
        raise SubjectError("install orderproof[demo]")

    (claim,) = select_claims([8])
    assert claim.checks[3].make_subject.__name__ in TRAINED_MODEL_FACTORIES
    record = type(claim.checks[3])(
        statement="x",
        make_subject=missing,
        method=LawCheck(PERMUTATION),
        expected="holds",
        asserted_by_claim="holds",
        negative_control=missing,
    ).run(AuditCache())
    assert (record.verdict, record.subject) == ("undecided", "A model that is not installed.")
    assert record.evidence == ("install orderproof[demo]",)
    assert not record.matches_expectation


def test_a_vacuous_proof_decides_only_a_pointwise_check():
    from orderproof.claims.add_norm import post_norm

    audits = AuditCache()
    outcome: CheckOutcome = LawCheck(PERMUTATION)(post_norm, audits)
    assert outcome.verdict == "undecided"
    assert "no token attends to another: each row is computed alone" in outcome.evidence
    assert LawCheck(PERMUTATION, pointwise=True)(post_norm, audits).verdict == "proved"


def test_an_unknown_number_is_refused():
    with pytest.raises(UsageError, match=r"expected the number of a claim, one of 1, 2, .*, 8\b.*; got 99"):
        select_claims([1, 99])
    assert [c.number for c in select_claims([4, 1])] == [1, 4]


def test_an_unknown_output_is_refused():
    from orderproof.claims.small_models import attention_steps

    with pytest.raises(UsageError, match="expected an output, one of Q, K, V, S, A, Z; got 'B'"):
        AuditCache().finding(attention_steps, "permutation", "B")
