"""Every law: its honest example is proved, its planted fault refuted; what it changes, and what it asks for."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from orderproof import laws
from orderproof.errors import UsageError
from orderproof.laws import Change, Law, TokenDim
from orderproof.laws.replacement import ReplacementLaw
from orderproof.permutations import cycle, inverse, reversal, transposition
from orderproof.prover.fact import ALWAYS, NEVER, Fact, still
from orderproof.prover.move import FREE, STILL, moved
from orderproof.record import Finding
from orderproof.subjects import from_module, load
from tests.audit.internals import Examination, Options, prove_law

LAWS = laws.laws()
NAMES = [law.name for law in LAWS]
PERMUTING = [law for law in LAWS if law.family == "permutation"]
each_law = pytest.mark.parametrize("law", LAWS, ids=NAMES)


def finding(law: Law, *, honest: bool, seed: int = 0) -> Finding:
    torch.manual_seed(seed)
    module = law.honest() if honest else law.faulty()
    subject = from_module(module, (torch.zeros(2, 7, 8),))
    (found,) = prove_law(Examination(subject, subject.length), law)
    return found


@each_law
def test_honest_example_is_proved_for_all_weights(law: Law) -> None:
    found = finding(law, honest=True)
    assert (found.verdict, found.vacuous, found.witness) == ("proved", False, None), found.reason
    assert (found.scope.weights, found.scope.consulted) == ("all", ())
    assert found.proof is not None
    assert found.deviation.float64 is not None
    assert found.deviation.float64 < 1e-12


@each_law
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_fault_is_refuted_with_a_witness(law: Law, seed: int) -> None:
    found = finding(law, honest=False, seed=seed)
    assert found.verdict == "refuted", found.reason
    assert found.proof is None
    assert found.entries
    witness = found.witness
    assert witness is not None
    assert witness.difference > 1e-6
    assert len(witness.before) == len(witness.after) <= 7
    assert witness.before != witness.after
    assert witness.expected != witness.found


@each_law
def test_witness_is_as_short_as_the_law_allows(law: Law) -> None:
    witness = finding(law, honest=False).witness
    assert witness is not None
    assert len(witness.before) == (3 if law.name == "prompt_blind" else 2)


@each_law
def test_law_is_documented_and_coded(law: Law) -> None:
    assert re.fullmatch(r"OP\d{3}", law.code)
    assert law.statement.endswith(".")
    assert laws.get(law.name) is laws.get(law.code) is laws.get(law.code.lower()) is law
    assert law.relation(5)["tokens"] == 5


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [law.code for law in LAWS]
    assert codes == sorted(set(codes))
    assert len(set(NAMES)) == len(NAMES)
    first = ["order_blind", "prompt_blind", "mirror_blind", "position_labelled"]
    assert [*first, "causal", "padding", "packing", "batch"] == NAMES


@pytest.mark.parametrize(
    ("given", "hint"), [("causl", "; did you mean 'causal'?"), ("OP10", "; did you mean 'OP1"), ("xyz", "got 'xyz'$")]
)
def test_unknown_law_is_refused_with_the_names(given: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"expected a law, one of order_blind, .*{hint}"):
        laws.get(given)


@pytest.mark.parametrize(
    ("law", "encoder", "causal_lm", "vision"),
    [
        ("order_blind", "fails", "fails", "fails"),
        ("prompt_blind", "fails", "fails", "any"),
        ("mirror_blind", "fails", "fails", "fails"),
        ("position_labelled", "any", "any", "any"),
        ("causal", "fails", "holds", "fails"),
        ("padding", "holds", "holds", "any"),
        ("packing", "any", "any", "any"),
        ("batch", "holds", "holds", "holds"),
    ],
)
def test_expectation_by_kind(law: str, encoder: str, causal_lm: str, vision: str) -> None:
    chosen = laws.get(law)
    assert [chosen.expected(kind) for kind in ("encoder", "causal_lm", "vision")] == [encoder, causal_lm, vision]


@each_law
def test_nothing_is_expected_of_a_kind_the_law_does_not_name(law: Law) -> None:
    assert law.expected("module") == law.expected("a kind of tomorrow") == "any"


# ---------------------------------------------------------------- what a change does


def test_permutation_sends_token_i_to_place_p_of_i() -> None:
    p = cycle(4)
    x = torch.arange(8.0).view(2, 4)
    y = Change("", permutation=p).apply(x, x, 1)
    for i in range(4):
        assert torch.equal(y[:, p[i]], x[:, i])
    assert Change("", permutation=p).labels(("a", "b", "c", "d"), ()) == ("d", "a", "b", "c")


def test_cut_replaces_the_tokens_from_it_on() -> None:
    x, other = torch.zeros(2, 4, 3), torch.ones(2, 4, 3)
    y = Change("", cut=1).apply(x, other, 1)
    assert y[:, :1].eq(0).all()
    assert y[:, 1:].eq(1).all()
    assert Change("", cut=1).labels(("a", "b", "c"), ("x", "y", "z")) == ("a", "y", "z")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_change_acts_along_the_axis_it_is_given(axis: int) -> None:
    x = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(0))
    swapped = Change("", permutation=transposition(3, 0, 2)).apply(x, x, axis)
    assert torch.equal(swapped, x.flip(axis))
    cut = Change("", cut=2).apply(x, -x, axis)
    assert torch.equal(cut.narrow(axis, 0, 2), x.narrow(axis, 0, 2))
    assert torch.equal(cut.narrow(axis, 2, 1), -x.narrow(axis, 2, 1))


@each_law
@pytest.mark.parametrize("tokens", [2, 3, 5, 9])
def test_changes_obey_the_relation_of_the_law(law: Law, tokens: int) -> None:
    changes = list(law.changes(tokens, 2))
    assert changes
    for change in changes:
        if isinstance(law, ReplacementLaw):
            assert np.array_equal(change.slots, law.replaced(2, tokens))
            continue
        if law.family == "influence":
            assert change.cut in range(1, tokens)
            continue
        assert change.permutation is not None
        assert sorted(change.permutation) == list(range(tokens))
        if law.name == "prompt_blind":
            assert change.permutation[-1] == tokens - 1
        if law.name == "mirror_blind":
            assert np.array_equal(change.permutation, reversal(tokens))


@pytest.mark.parametrize(("law", "count"), [("order_blind", 120), ("prompt_blind", 24), ("mirror_blind", 2)])
def test_generators_generate_the_whole_group(law: str, count: int) -> None:
    generators = [tuple(g) for g in laws.get(law).relation(5)["generators"]]
    found = {tuple(range(5))}
    while True:
        more = found | {tuple(g[i] for i in p) for p in found for g in generators}
        if more == found:
            break
        found = more
    assert len(found) == count


def test_cases_name_each_generator_and_each_cut_once() -> None:
    for law in PERMUTING:
        assert [g for _, g, _ in law.cases(7)] == list(range(len(law.relation(7)["generators"])))
    assert sorted(case for _, _, case in laws.get("causal").cases(7)) == [1, 2, 3, 4, 5, 6]


# ---------------------------------------------------------------- what is asked of the outputs

RUN = torch.Generator().manual_seed(0)
FIRST = torch.randn(2, 6, 3, generator=RUN)
OTHER = torch.randn(2, 6, 3, generator=RUN)


@pytest.mark.parametrize("law", ["order_blind", "mirror_blind"])
@pytest.mark.parametrize("offset", [0, 1])
def test_permuted_output_is_what_the_law_asks(law: str, offset: int) -> None:
    """One token of six stands before the others ([CLS]) where the offset is 1, and stays."""
    chosen, tokens = laws.get(law), 6 - offset
    for change in chosen.changes(tokens):
        assert change.permutation is not None
        p = np.concatenate([np.arange(offset), change.permutation + offset])
        second = FIRST[:, inverse(p)]
        expected, found = chosen.compare(FIRST, second, (TokenDim(1, offset),), change)
        assert torch.equal(expected, found)
        expected, found = chosen.compare(FIRST, FIRST, (TokenDim(1, offset),), change)
        assert not torch.equal(expected, found)
        expected, found = chosen.compare(FIRST, FIRST, (), change)  # pooled: unchanged
        assert torch.equal(expected, found)


def test_output_with_two_token_dimensions_is_permuted_along_both() -> None:
    law = laws.get("order_blind")
    scores = torch.randn(2, 5, 5, generator=RUN)
    for change in law.changes(5):
        q = torch.from_numpy(inverse(change.permutation))
        expected, found = law.compare(scores, scores[:, q][:, :, q], (TokenDim(1), TokenDim(2)), change)
        assert torch.equal(expected, found)


def test_prompt_blind_asks_for_the_last_token_only() -> None:
    law = laws.get("prompt_blind")
    change = next(iter(law.changes(6)))
    changed = torch.cat([OTHER[:, :5], FIRST[:, 5:]], 1)
    expected, found = law.compare(FIRST, changed, (TokenDim(1),), change)
    assert expected.shape == (2, 1, 3)
    assert torch.equal(expected, found)
    expected, found = law.compare(FIRST, OTHER, (TokenDim(1),), change)
    assert not torch.equal(expected, found)


@pytest.mark.parametrize("offset", [0, 1])
def test_causal_asks_for_the_tokens_before_the_cut(offset: int) -> None:
    law = laws.get("causal")
    for change in law.changes(6 - offset):
        end = change.cut + offset
        changed = torch.cat([FIRST[:, :end], OTHER[:, end:]], 1)
        expected, found = law.compare(FIRST, changed, (TokenDim(1, offset),), change)
        assert expected.shape[1] == end
        assert torch.equal(expected, found)


REPLACING = [part for law in LAWS if isinstance(law, ReplacementLaw) for part in law.relations(2)]


@pytest.mark.parametrize("law", REPLACING, ids=lambda law: f"{law.name} {law.told(6)}")
@pytest.mark.parametrize("offset", [0, 1])
def test_replacing_slots_asks_for_the_others_only(law: ReplacementLaw, offset: int) -> None:
    tokens = 6 - offset
    (change,) = law.changes(tokens, 2)
    replaced, asked = law.replaced(2, tokens), law.asked(2, tokens)
    assert replaced.any()
    assert asked.any()
    assert not (replaced & asked).any()
    changed = FIRST.clone()
    changed[:, offset:] = change.apply(FIRST[:, offset:], OTHER[:, offset:], 1)
    assert torch.equal(changed[:, offset:][torch.from_numpy(~replaced)], FIRST[:, offset:][torch.from_numpy(~replaced)])
    expected, found = law.compare(FIRST, changed, (TokenDim(1, offset),), change)
    assert torch.equal(expected, found)
    beside = offset * asked.all(axis=1).sum()  # an entry beside the tokens belongs to its whole row
    assert expected.numel() == 3 * (asked.sum() + beside)
    index = law.place((0,), (TokenDim(1, offset),), tokens, (2, 6, 3))
    assert asked[index[0], index[1] - offset] or (asked[index[0]].all() and index[1] < offset)
    assert FIRST[index] == expected[0]


@pytest.mark.parametrize("law", REPLACING, ids=lambda law: f"{law.name} {law.told(6)}")
def test_an_output_that_depends_on_what_is_replaced_falls_short(law: ReplacementLaw) -> None:
    everywhere = Fact((2, 5, 4), (STILL,) * 3, np.zeros((1, 1, 1), dtype=np.int64))
    assert "may depend on what is replaced" in (law.shortfall(everywhere, (TokenDim(1),), 5) or "")
    assert "may depend on anything" in (law.shortfall(still((2, 5, 4), ALWAYS), (TokenDim(1),), 5) or "")
    assert law.shortfall(still((2, 5, 4)), (TokenDim(1),), 5) is None


def test_pads_lie_left_and_right_by_turns_and_a_single_row_has_both() -> None:
    padding = laws.get("padding")
    assert isinstance(padding, ReplacementLaw)
    assert padding.replaced(2, 7).astype(int).tolist() == [[1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1]]
    assert padding.replaced(1, 7).astype(int).tolist() == [[1, 0, 0, 0, 0, 0, 1]]
    assert padding.replaced(1, 2).astype(int).tolist() == [[1, 0]]


def test_every_row_and_every_document_is_replaced_in_some_part() -> None:
    for name in ("packing", "batch"):
        parts = laws.get(name).relations(2)
        assert np.logical_or.reduce([p.replaced(2, 6) for p in parts]).all()  # type: ignore[attr-defined]


# ---------------------------------------------------------------- when a fact is enough


@each_law
def test_input_itself_obeys_every_law(law: Law) -> None:
    """The identity is a model; the fact about its output is the fact about its input."""
    assert law.shortfall(law.input_fact((2, 5, 4), 1), (TokenDim(1),), 5) is None


@each_law
def test_nothing_follows_is_never_enough(law: Law) -> None:
    assert law.shortfall(still((2, 5, 4), ALWAYS), (TokenDim(1),), 5) is not None


@pytest.mark.parametrize("law", PERMUTING, ids=lambda law: law.name)
def test_input_without_tokens_does_not_move(law: Law) -> None:
    fact = law.input_fact((2, 5), None)
    assert fact.unmoved
    assert fact.valid


@pytest.mark.parametrize("law", ["order_blind", "mirror_blind"])
def test_token_dimension_that_stays_put_is_not_enough(law: str) -> None:
    chosen = laws.get(law)
    assert "does not move with them" in (chosen.shortfall(still((2, 5, 4), NEVER), (TokenDim(1),), 5) or "")
    assert chosen.shortfall(still((2, 4), NEVER), (), 5) is None
    assert "but moves" in (chosen.shortfall(chosen.input_fact((2, 5, 4), 1), (), 5) or "")
    free = Fact((2, 5, 4), (STILL, FREE, STILL), still((2, 5, 4)).level)
    assert chosen.shortfall(free, (TokenDim(1),), 5) is None


def test_entries_beside_the_tokens_must_stay() -> None:
    law = laws.get("order_blind")
    group = np.stack([np.array(g) for g in law.relation(5)["generators"]])
    shifted = moved(np.concatenate([np.zeros((2, 1), dtype=np.int64), group + 1], axis=1))
    level = still((2, 6, 4)).level
    assert law.shortfall(Fact((2, 6, 4), (STILL, shifted, STILL), level), (TokenDim(1, 1),), 5) is None
    behind = moved(np.concatenate([group, np.full((2, 1), 5)], axis=1))
    assert law.shortfall(Fact((2, 6, 4), (STILL, behind, STILL), level), (TokenDim(1, 1),), 5) is not None
    assert law.shortfall(Fact((2, 6, 4), (STILL, behind, STILL), level), (TokenDim(1, 0),), 5) is None


def test_causal_names_the_first_token_that_sees_too_far() -> None:
    law = laws.get("causal")
    level = np.array([0, 1, 3, 3, 4]).reshape(1, 5, 1)
    fact = Fact((2, 5, 4), (STILL,) * 3, level)
    assert law.shortfall(fact, (TokenDim(1),), 5) == "the output at token 2 may depend on token 3"
    assert law.shortfall(still((2, 5, 4), ALWAYS), (TokenDim(1),), 5) == (
        "the output at token 0 may depend on anything"
    )


def test_entries_before_the_tokens_may_see_no_token() -> None:
    law = laws.get("causal")
    level = np.array([-1, 0, 1, 2, 3, 4]).reshape(1, 6, 1)
    assert law.shortfall(Fact((2, 6, 4), (STILL,) * 3, level), (TokenDim(1, 1),), 5) is None
    level = np.array([0, 0, 1, 2, 3, 4]).reshape(1, 6, 1)
    assert law.shortfall(Fact((2, 6, 4), (STILL,) * 3, level), (TokenDim(1, 1),), 5) is not None


def test_pad_token_itself_is_a_witness_where_positions_count_what_is_no_pad() -> None:
    subject = load("arch:esm", tiny=True)
    found = prove_law(Examination(subject, subject.length), laws.get("padding"))[0]
    assert (found.verdict, found.setting) == ("refuted", "padded")
    assert found.witness is not None
    assert "<pad>" in found.witness.after


# ---------------------------------------------------------------- what to do


@pytest.mark.parametrize("law", [law for law in LAWS if law.expectation], ids=lambda law: law.name)
def test_law_that_is_expected_says_what_to_do_in_words_and_as_code(law: Law) -> None:
    for wanted in set(law.expectation.values()) - {"any"}:
        remedy = law.remedies[wanted]
        assert remedy.text.endswith(".")
        assert [line[0] for line in remedy.diff.splitlines()] == ["-", "+"]


@each_law
def test_violation_of_what_is_expected_comes_with_the_remedy(law: Law) -> None:
    torch.manual_seed(0)
    for wanted, module in (("holds", law.faulty()), ("fails", law.honest())):
        subject = from_module(module, (torch.zeros(2, 7, 8),))
        (found,) = prove_law(Examination(subject, subject.length), law, Options(expect=wanted))
        remedy = law.remedies.get(wanted)
        assert not found.met
        assert (found.fix, found.diff) == ((remedy.text, remedy.diff) if remedy else ("", ""))
