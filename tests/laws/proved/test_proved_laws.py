"""Each law: its conforming example is proved, its fault is refuted, and it changes the inputs that it names."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from orderproof import laws
from orderproof.diagnosis.domain.fact import ALWAYS, NEVER, Fact, unmoved_fact
from orderproof.diagnosis.domain.move import FREE, STILL, permuted_axis
from orderproof.errors import UsageError
from orderproof.laws import InputChange, ProvedLaw, TokenDim
from orderproof.laws.proved.proved_law import EquivarianceLaw
from orderproof.laws.proved.replacement_law import ReplacementLaw
from orderproof.models import from_module, load
from orderproof.permutations import cycle, inverse, reversal, transposition
from orderproof.records.audit import Finding
from tests.auditing.internals import AuditContext, ProofOptions, prove_law
from tests.laws.law_fixture import law_fixtures

LAWS = laws.proved_laws()
NAMES = [law.name for law in LAWS]
PERMUTING = [law for law in LAWS if law.family == "permutation"]
each_law = pytest.mark.parametrize("law", LAWS, ids=NAMES)


def group_law(name: str) -> EquivarianceLaw:
    law = laws.find_proved_law(name)
    assert isinstance(law, EquivarianceLaw)
    return law


def finding(law: ProvedLaw, *, honest: bool, seed: int = 0) -> Finding:
    torch.manual_seed(seed)
    module = law_fixtures()[law.name].conforming() if honest else law_fixtures()[law.name].violating()
    subject = from_module(module, (torch.zeros(2, 7, 8),))
    (found,) = prove_law(AuditContext(subject, subject.default_length), law)
    return found


@each_law
def test_honest_example_is_proved_for_all_weights(law: ProvedLaw) -> None:
    found = finding(law, honest=True)
    assert (found.verdict, found.vacuous, found.witness) == ("proved", False, None), found.reason
    assert (found.scope.weights, found.scope.tensors_read) == ("all", ())
    assert found.proof is not None
    assert found.deviation.float64 is not None
    assert found.deviation.float64 < 1e-12


@each_law
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_fault_is_refuted_with_a_witness(law: ProvedLaw, seed: int) -> None:
    found = finding(law, honest=False, seed=seed)
    assert found.verdict == "refuted", found.reason
    assert found.proof is None
    assert found.entries
    witness = found.witness
    assert witness is not None
    assert witness.relative_difference > 1e-6
    assert len(witness.tokens_before) == len(witness.tokens_after) <= 7
    assert witness.tokens_before != witness.tokens_after
    assert witness.expected_value != witness.actual_value


@each_law
def test_witness_is_as_short_as_the_law_allows(law: ProvedLaw) -> None:
    witness = finding(law, honest=False).witness
    assert witness is not None
    assert len(witness.tokens_before) == (3 if law.name == "prompt_permutation" else 2)


@each_law
def test_law_is_documented_and_coded(law: ProvedLaw) -> None:
    assert re.fullmatch(r"OP\d{3}", law.code)
    assert law.statement.endswith(".")
    assert (
        laws.find_proved_law(law.name)
        is laws.find_proved_law(law.code)
        is laws.find_proved_law(law.code.lower())
        is law
    )


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [law.code for law in LAWS]
    assert codes == sorted(set(codes))
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("given", "hint"), [("causl", "; did you mean 'causal'?"), ("OP10", "; did you mean 'OP1"), ("xyz", "got 'xyz'$")]
)
def test_unknown_law_is_refused_with_the_names(given: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"expected a proved law(, one of permutation, .*)?.*{hint}"):
        laws.find_proved_law(given)


@pytest.mark.parametrize(
    ("law", "encoder", "causal_lm", "vision"),
    [
        ("permutation", "fails", "fails", "fails"),
        ("prompt_permutation", "fails", "fails", "any"),
        ("reversal", "fails", "fails", "fails"),
        ("position_ids", "any", "any", "any"),
        ("causal", "fails", "holds", "fails"),
        ("padding", "holds", "holds", "any"),
        ("packing", "any", "any", "any"),
        ("batch", "holds", "holds", "holds"),
    ],
)
def test_expectation_by_kind(law: str, encoder: str, causal_lm: str, vision: str) -> None:
    chosen = laws.find_proved_law(law)
    assert [chosen.expected(kind) for kind in ("encoder", "causal_lm", "vision")] == [encoder, causal_lm, vision]


@each_law
def test_nothing_is_expected_of_a_kind_the_law_does_not_name(law: ProvedLaw) -> None:
    assert law.expected("module") == law.expected("a kind of tomorrow") == "any"


# ---------------------------------------------------------------- what a change does


def test_permutation_sends_token_i_to_place_p_of_i() -> None:
    p = cycle(4)
    x = torch.arange(8.0).view(2, 4)
    y = InputChange("", permutation=p).apply(x, x, 1)
    for i in range(4):
        assert torch.equal(y[:, p[i]], x[:, i])
    assert InputChange("", permutation=p).labels(("a", "b", "c", "d"), ()) == ("d", "a", "b", "c")


def test_cut_replaces_the_tokens_from_it_on() -> None:
    x, other = torch.zeros(2, 4, 3), torch.ones(2, 4, 3)
    y = InputChange("", first_replaced=1).apply(x, other, 1)
    assert y[:, :1].eq(0).all()
    assert y[:, 1:].eq(1).all()
    assert InputChange("", first_replaced=1).labels(("a", "b", "c"), ("x", "y", "z")) == ("a", "y", "z")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_change_acts_along_the_axis_it_is_given(axis: int) -> None:
    x = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(0))
    swapped = InputChange("", permutation=transposition(3, 0, 2)).apply(x, x, axis)
    assert torch.equal(swapped, x.flip(axis))
    cut = InputChange("", first_replaced=2).apply(x, -x, axis)
    assert torch.equal(cut.narrow(axis, 0, 2), x.narrow(axis, 0, 2))
    assert torch.equal(cut.narrow(axis, 2, 1), -x.narrow(axis, 2, 1))


@each_law
@pytest.mark.parametrize("tokens", [2, 3, 5, 9])
def test_changes_obey_the_relation_of_the_law(law: ProvedLaw, tokens: int) -> None:
    changes = list(law.input_changes(tokens, 2))
    assert changes
    for change in changes:
        if isinstance(law, ReplacementLaw):
            assert np.array_equal(change.replaced_slots, law.replaced_slots(2, tokens))
            continue
        if law.family == "independence":
            assert change.first_replaced in range(1, tokens)
            continue
        assert change.permutation is not None
        assert sorted(change.permutation) == list(range(tokens))
        if law.name == "prompt_permutation":
            assert change.permutation[-1] == tokens - 1
        if law.name == "reversal":
            assert np.array_equal(change.permutation, reversal(tokens))


@pytest.mark.parametrize(("law", "count"), [("permutation", 120), ("prompt_permutation", 24), ("reversal", 2)])
def test_generators_generate_the_whole_group(law: str, count: int) -> None:
    generators = [tuple(g.tolist()) for g in group_law(law).generators(5)]
    found = {tuple(range(5))}
    while True:
        more = found | {tuple(g[i] for i in p) for p in found for g in generators}
        if more == found:
            break
        found = more
    assert len(found) == count


def test_cases_name_each_generator_and_each_cut_once() -> None:
    for law in PERMUTING:
        assert [g for _, g, _ in law.proof_cases(7)] == list(range(len(group_law(law.name).generators(7))))
    assert sorted(case for _, _, case in laws.find_proved_law("causal").proof_cases(7)) == [1, 2, 3, 4, 5, 6]


# ---------------------------------------------------------------- what is asked of the outputs

RUN = torch.Generator().manual_seed(0)
FIRST = torch.randn(2, 6, 3, generator=RUN)
OTHER = torch.randn(2, 6, 3, generator=RUN)


@pytest.mark.parametrize("law", ["permutation", "reversal"])
@pytest.mark.parametrize("offset", [0, 1])
def test_permuted_output_is_what_the_law_asks(law: str, offset: int) -> None:
    """One token of six stands before the others ([CLS]) where the offset is 1, and stays."""
    chosen, tokens = laws.find_proved_law(law), 6 - offset
    for change in chosen.input_changes(tokens):
        assert change.permutation is not None
        p = np.concatenate([np.arange(offset), change.permutation + offset])
        second = FIRST[:, inverse(p)]
        expected, found = chosen.expected_and_actual(FIRST, second, (TokenDim(1, offset),), change)
        assert torch.equal(expected, found)
        expected, found = chosen.expected_and_actual(FIRST, FIRST, (TokenDim(1, offset),), change)
        assert not torch.equal(expected, found)
        expected, found = chosen.expected_and_actual(FIRST, FIRST, (), change)  # pooled: unchanged
        assert torch.equal(expected, found)


def test_output_with_two_token_dimensions_is_permuted_along_both() -> None:
    law = laws.find_proved_law("permutation")
    scores = torch.randn(2, 5, 5, generator=RUN)
    for change in law.input_changes(5):
        q = torch.from_numpy(inverse(change.permutation))
        expected, found = law.expected_and_actual(scores, scores[:, q][:, :, q], (TokenDim(1), TokenDim(2)), change)
        assert torch.equal(expected, found)


def test_prompt_blind_asks_for_the_last_token_only() -> None:
    law = laws.find_proved_law("prompt_permutation")
    change = next(iter(law.input_changes(6)))
    changed = torch.cat([OTHER[:, :5], FIRST[:, 5:]], 1)
    expected, found = law.expected_and_actual(FIRST, changed, (TokenDim(1),), change)
    assert expected.shape == (2, 1, 3)
    assert torch.equal(expected, found)
    expected, found = law.expected_and_actual(FIRST, OTHER, (TokenDim(1),), change)
    assert not torch.equal(expected, found)


@pytest.mark.parametrize("offset", [0, 1])
def test_causal_asks_for_the_tokens_before_the_cut(offset: int) -> None:
    law = laws.find_proved_law("causal")
    for change in law.input_changes(6 - offset):
        end = change.first_replaced + offset
        changed = torch.cat([FIRST[:, :end], OTHER[:, end:]], 1)
        expected, found = law.expected_and_actual(FIRST, changed, (TokenDim(1, offset),), change)
        assert expected.shape[1] == end
        assert torch.equal(expected, found)


REPLACING = [part for law in LAWS if isinstance(law, ReplacementLaw) for part in law.subrelations(2)]


@pytest.mark.parametrize("law", REPLACING, ids=lambda law: f"{law.name} {law.change_description(6)}")
@pytest.mark.parametrize("offset", [0, 1])
def test_replacing_slots_asks_for_the_others_only(law: ReplacementLaw, offset: int) -> None:
    tokens = 6 - offset
    (change,) = law.input_changes(tokens, 2)
    replaced, asked = law.replaced_slots(2, tokens), law.unchanged_slots(2, tokens)
    assert replaced.any()
    assert asked.any()
    assert not (replaced & asked).any()
    changed = FIRST.clone()
    changed[:, offset:] = change.apply(FIRST[:, offset:], OTHER[:, offset:], 1)
    assert torch.equal(changed[:, offset:][torch.from_numpy(~replaced)], FIRST[:, offset:][torch.from_numpy(~replaced)])
    expected, found = law.expected_and_actual(FIRST, changed, (TokenDim(1, offset),), change)
    assert torch.equal(expected, found)
    other = offset * asked.all(axis=1).sum()  # an entry outside the tokens belongs to its whole row
    assert expected.numel() == 3 * (asked.sum() + other)
    index = law.output_index((0,), (TokenDim(1, offset),), tokens, (2, 6, 3))
    assert asked[index[0], index[1] - offset] or (asked[index[0]].all() and index[1] < offset)
    assert FIRST[index] == expected[0]


@pytest.mark.parametrize("law", REPLACING, ids=lambda law: f"{law.name} {law.change_description(6)}")
def test_an_output_that_depends_on_what_is_replaced_falls_short(law: ReplacementLaw) -> None:
    everywhere = Fact((2, 5, 4), (STILL,) * 3, np.zeros((1, 1, 1), dtype=np.int64))
    assert law.dependence_text(0) in ("a replaced token", "another row")
    assert f"may depend on {law.dependence_text(0)}" in (law.missing_property(everywhere, (TokenDim(1),), 5) or "")
    assert "may depend on anything" in (law.missing_property(unmoved_fact((2, 5, 4), ALWAYS), (TokenDim(1),), 5) or "")
    assert law.missing_property(unmoved_fact((2, 5, 4)), (TokenDim(1),), 5) is None


def test_pads_lie_left_and_right_by_turns_and_a_single_row_has_both() -> None:
    padding = laws.find_proved_law("padding")
    assert isinstance(padding, ReplacementLaw)
    assert padding.replaced_slots(2, 7).astype(int).tolist() == [[1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1]]
    assert padding.replaced_slots(1, 7).astype(int).tolist() == [[1, 0, 0, 0, 0, 0, 1]]
    assert padding.replaced_slots(1, 2).astype(int).tolist() == [[1, 0]]


def test_every_row_and_every_document_is_replaced_in_some_part() -> None:
    for name in ("packing", "batch"):
        parts = laws.find_proved_law(name).subrelations(2)
        assert np.logical_or.reduce([p.replaced_slots(2, 6) for p in parts]).all()  # type: ignore[attr-defined]


# ---------------------------------------------------------------- when a fact is enough


@each_law
def test_input_itself_obeys_every_law(law: ProvedLaw) -> None:
    """The identity is a model; the fact about its output is the fact about its input."""
    assert law.missing_property(law.input_fact((2, 5, 4), 1), (TokenDim(1),), 5) is None


@each_law
def test_nothing_follows_is_never_enough(law: ProvedLaw) -> None:
    assert law.missing_property(unmoved_fact((2, 5, 4), ALWAYS), (TokenDim(1),), 5) is not None


@pytest.mark.parametrize("law", PERMUTING, ids=lambda law: law.name)
def test_input_without_tokens_does_not_move(law: ProvedLaw) -> None:
    fact = law.input_fact((2, 5), None)
    assert fact.has_no_moves
    assert (fact.dependence == NEVER).all()


@pytest.mark.parametrize("law", ["permutation", "reversal"])
def test_token_dimension_that_stays_put_is_not_enough(law: str) -> None:
    chosen = laws.find_proved_law(law)
    assert "does not move with them" in (
        chosen.missing_property(unmoved_fact((2, 5, 4), NEVER), (TokenDim(1),), 5) or ""
    )
    assert chosen.missing_property(unmoved_fact((2, 4), NEVER), (), 5) is None
    assert "but moves" in (chosen.missing_property(chosen.input_fact((2, 5, 4), 1), (), 5) or "")
    free = Fact((2, 5, 4), (STILL, FREE, STILL), unmoved_fact((2, 5, 4)).dependence)
    assert chosen.missing_property(free, (TokenDim(1),), 5) is None


def test_entries_outside_the_tokens_must_not_move() -> None:
    law = laws.find_proved_law("permutation")
    group = np.stack(group_law("permutation").generators(5))
    shifted = permuted_axis(np.concatenate([np.zeros((2, 1), dtype=np.int64), group + 1], axis=1))
    level = unmoved_fact((2, 6, 4)).dependence
    assert law.missing_property(Fact((2, 6, 4), (STILL, shifted, STILL), level), (TokenDim(1, 1),), 5) is None
    behind = permuted_axis(np.concatenate([group, np.full((2, 1), 5)], axis=1))
    assert law.missing_property(Fact((2, 6, 4), (STILL, behind, STILL), level), (TokenDim(1, 1),), 5) is not None
    assert law.missing_property(Fact((2, 6, 4), (STILL, behind, STILL), level), (TokenDim(1, 0),), 5) is None


def test_causal_names_the_first_token_that_sees_too_far() -> None:
    law = laws.find_proved_law("causal")
    level = np.array([0, 1, 3, 3, 4]).reshape(1, 5, 1)
    fact = Fact((2, 5, 4), (STILL,) * 3, level)
    assert law.missing_property(fact, (TokenDim(1),), 5) == "the output at token 2 may depend on token 3"
    assert law.missing_property(unmoved_fact((2, 5, 4), ALWAYS), (TokenDim(1),), 5) == (
        "the output at token 0 may depend on anything"
    )


def test_entries_before_the_tokens_may_see_no_token() -> None:
    law = laws.find_proved_law("causal")
    level = np.array([-1, 0, 1, 2, 3, 4]).reshape(1, 6, 1)
    assert law.missing_property(Fact((2, 6, 4), (STILL,) * 3, level), (TokenDim(1, 1),), 5) is None
    level = np.array([0, 0, 1, 2, 3, 4]).reshape(1, 6, 1)
    assert law.missing_property(Fact((2, 6, 4), (STILL,) * 3, level), (TokenDim(1, 1),), 5) is not None


def test_pad_token_itself_is_a_witness_where_positions_count_what_is_no_pad() -> None:
    subject = load("arch:esm", tiny=True)
    found = prove_law(AuditContext(subject, subject.default_length), laws.find_proved_law("padding"))[0]
    assert (found.verdict, found.call_mode) == ("refuted", "padded")
    assert found.witness is not None
    assert "<pad>" in found.witness.tokens_after


# ---------------------------------------------------------------- what to do


@pytest.mark.parametrize("law", [law for law in LAWS if law.expectation], ids=lambda law: law.name)
def test_law_that_is_expected_says_what_to_do_in_words_and_as_code(law: ProvedLaw) -> None:
    for wanted in set(law.expectation.values()) - {"any"}:
        remedy = law.remedies[wanted]
        assert remedy.text.endswith(".")
        assert [line[0] for line in remedy.diff.splitlines()] == ["-", "+"]


@each_law
def test_violation_of_what_is_expected_comes_with_the_remedy(law: ProvedLaw) -> None:
    torch.manual_seed(0)
    for wanted, module in (
        ("holds", law_fixtures()[law.name].violating()),
        ("fails", law_fixtures()[law.name].conforming()),
    ):
        subject = from_module(module, (torch.zeros(2, 7, 8),))
        (found,) = prove_law(AuditContext(subject, subject.default_length), law, ProofOptions(expect=wanted))
        of_operators = law.remedies_by_mixing.values() if wanted == "holds" else ()
        remedy = next((r for r in of_operators if r.text == found.remedy), law.remedies.get(wanted))
        assert not found.expectation_met
        assert found.remedy == (remedy.text if remedy else "")
        edits_own_line = bool(found.fix_line) and found.remedy_diff.startswith(f"-{found.fix_line}\n+{found.fix_line}")
        assert edits_own_line == (law.name == "causal" and wanted == "holds")
        assert edits_own_line or found.remedy_diff == (remedy.diff if remedy else "")
