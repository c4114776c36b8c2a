"""Every claim has the verdict it documents because of what is found, and a planted fault turns it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from orderproof.claim_record import ClaimRecord, GroundRecord, verdict_of
from orderproof.claims import Claim, claims, numbered, run_claims
from orderproof.claims.bench import Bench
from orderproof.claims.by_law import ByLaw
from orderproof.claims.claim import Outcome
from orderproof.errors import SubjectError, UsageError

GROUNDS = [(claim, k) for claim in claims() for k in range(len(claim.grounds))]
NAMES = [f"{claim.number}-{claim.name}-{k}" for claim, k in GROUNDS]
OF_THE_TRAINED_MODEL = {"trained"}


@pytest.fixture(scope="module")
def bench() -> Bench:
    """One bench for all claims, as in one run of the command."""
    return Bench()


@pytest.fixture(scope="module")
def found(bench: Bench) -> Callable[[int], ClaimRecord]:
    """What is found of a claim, once."""
    return cache(lambda number: numbered([number])[0].examined(bench))


def test_there_are_eight_claims_numbered_from_one():
    assert [claim.number for claim in claims()] == list(range(1, 9))
    assert len({claim.name for claim in claims()}) == 8


@pytest.mark.parametrize("claim", claims(), ids=lambda c: c.name)
@pytest.mark.filterwarnings("default")
def test_a_claim_has_the_verdict_it_documents(claim: Claim, found: Callable[[int], ClaimRecord]):
    record = found(claim.number)
    assert [(g.what, g.subject, g.found) for g in record.grounds if not g.as_expected] == []
    assert record.verdict == claim.documented
    assert record.met
    assert all(g.subject.endswith(".") and g.evidence for g in record.grounds)


def test_only_the_fourth_is_refuted_and_only_the_third_is_not_more_than_shown():
    verdicts = {claim.number: claim.documented for claim in claims()}
    assert {n for n, v in verdicts.items() if v == "refuted"} == {4}
    assert {n for n, v in verdicts.items() if v == "shown"} == {3}


@pytest.mark.parametrize(("claim", "k"), GROUNDS, ids=NAMES)
@pytest.mark.filterwarnings("default")
def test_a_planted_fault_turns_the_ground_and_where_it_decides_the_verdict(claim: Claim, k: int, bench: Bench):
    ground = claim.with_a_fault(k).grounds[k]
    assert ground.subject is claim.grounds[k].broken
    planted = ground.examined(bench)
    assert not planted.as_expected, "the fault is not seen"
    if ground.asserted is not None:
        assert verdict_of([planted]) != claim.documented


@pytest.mark.filterwarnings("default")
def test_two_causal_layers_in_the_place_of_one_refute_the_first_claim():
    (claim,) = numbered([1])
    found = run_claims([replace(claim, grounds=claim.with_a_fault(1).grounds[1:2])])
    (record,) = found.claims
    assert (record.verdict, record.documented, record.met, found.exit_code) == ("refuted", "proved", False, 1)
    assert record.grounds[0].witness is not None
    assert record.grounds[0].witness.permutation == (1, 0, 2)


@pytest.mark.filterwarnings("default")
def test_the_scores_of_cat_are_printed_for_both_sentences(found: Callable[[int], ClaimRecord]):
    first, second = found(5).grounds[2].evidence[:2]
    assert first.startswith("the cat chased the dog: ")
    assert second.startswith("the dog chased the cat: ")
    numbers = [line.partition(": ")[2].split() for line in (first, second)]
    assert numbers[0] != numbers[1]
    assert sorted(numbers[0]) == sorted(numbers[1])


# ---------------------------------------------------------------- verdicts follow from grounds


def ground(found: str, asserted: str | None, expected: str = "holds") -> GroundRecord:
    return GroundRecord(what="x", subject="y", found=found, expected=expected, asserted=asserted)


@pytest.mark.parametrize(
    ("grounds", "verdict"),
    [
        ([ground("proved", "holds")], "proved"),
        ([ground("refuted", "fails")], "proved"),
        ([ground("refuted", "holds")], "refuted"),
        ([ground("proved", "fails")], "refuted"),
        ([ground("shown", "fails")], "refuted"),
        ([ground("proved", "holds"), ground("shown", "holds")], "shown"),
        ([ground("proved", "holds"), ground("undecided", "holds")], "undecided"),
        ([ground("refuted", "holds"), ground("undecided", "holds")], "refuted"),
        ([ground("proved", "holds"), ground("refuted", None)], "proved"),
        ([ground("proved", None)], "undecided"),
        ([], "undecided"),
    ],
)
def test_a_verdict_follows_from_what_was_found(grounds: list[GroundRecord], verdict: str):
    assert verdict_of(grounds) == verdict


def test_a_ground_of_a_subject_that_cannot_be_had_is_undecided_and_says_why():
    def missing() -> None:
        """A model that is not installed."""
        raise SubjectError("install orderproof[demo]")

    (claim,) = numbered([8])
    assert claim.grounds[3].subject.__name__ in OF_THE_TRAINED_MODEL
    planted = type(claim.grounds[3])(
        what="x", subject=missing, test=ByLaw("order_blind"), expected="holds", asserted="holds", broken=missing
    ).examined(Bench())
    assert (planted.found, planted.subject) == ("undecided", "A model that is not installed.")
    assert planted.evidence == ("install orderproof[demo]",)
    assert not planted.as_expected


def test_a_proof_in_which_no_token_sees_another_settles_nothing_where_tokens_should():
    from orderproof.claims.add_norm import add_and_norm

    bench = Bench()
    strict: Outcome = ByLaw("order_blind")(add_and_norm, bench)
    assert strict.found == "undecided"
    assert "no token sees another: each row is worked out alone" in strict.evidence
    assert ByLaw("order_blind", alone=True)(add_and_norm, bench).found == "proved"


def test_an_unknown_number_is_refused():
    with pytest.raises(UsageError, match=r"expected the number of a claim, one of 1, 2, .*, 8; got 9"):
        numbered([1, 9])
    assert [c.number for c in numbered([4, 1])] == [1, 4]


def test_an_output_that_is_not_there_is_refused():
    from orderproof.claims.models import steps

    with pytest.raises(UsageError, match="expected an output, one of Q, K, V, S, A, Z; got 'B'"):
        Bench().finding(steps, "order_blind", "B")
