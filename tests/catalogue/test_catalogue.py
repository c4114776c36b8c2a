"""Each list that is read from source equals the registry, which imports every file."""

from __future__ import annotations

import inspect

import pytest

from orderproof import encodings as all_encodings
from orderproof.atlas.operator_usage import operator_usage
from orderproof.catalogue import claims, encodings, laws, questions, rules
from orderproof.catalogue.laws import LawEntry
from orderproof.claims import claims as all_claims
from orderproof.diagnosis import rule
from orderproof.errors import UsageError
from orderproof.lab.ceilings import MODEL_KINDS
from orderproof.lab.registry import questions as all_questions
from orderproof.laws import find_law, measured_laws, port_laws, proved_laws, training_laws

LAWS = {law.name: law for law in (*proved_laws(), *measured_laws(), *port_laws(), *training_laws())}


def test_laws_are_in_the_order_of_the_registry() -> None:
    assert [entry.name for entry in laws.laws()] == list(LAWS)


@pytest.mark.parametrize("name", LAWS)
def test_the_fields_of_a_law_are_literals_with_the_values_of_the_law(name: str) -> None:
    entry = laws.find_law(name)
    assert entry == LawEntry(**{field: getattr(LAWS[name], field) for field in LawEntry._fields})
    assert laws.find_law(entry.code.lower()) == entry


def test_an_unknown_law_is_refused_like_in_the_registry() -> None:
    messages = []
    for find in (laws.find_law, find_law):
        with pytest.raises(UsageError) as refused:
            find("causl")  # type: ignore[operator]
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert messages[0].endswith("got 'causl'; did you mean 'causal'?")


@pytest.mark.parametrize("name", all_encodings.names())
def test_an_encoding_has_its_name_class_and_description(name: str) -> None:
    encoding = all_encodings.get(name)
    description = (inspect.getdoc(inspect.getmodule(encoding)) or "").splitlines()[0]
    assert (name, encoding.__name__, description) in encodings.encodings()


def test_there_are_no_other_encodings() -> None:
    assert [entry.name for entry in encodings.encodings()] == list(all_encodings.names())


@pytest.mark.parametrize("name", all_questions())
def test_a_question_has_the_attributes_of_its_class(name: str) -> None:
    entry, question = questions.questions()[name], all_questions()[name]
    assert entry._asdict() == {field: getattr(question, field) for field in entry._fields}


def test_there_are_no_other_questions() -> None:
    assert list(questions.questions()) == list(all_questions())
    assert questions.model_kinds() == MODEL_KINDS


def test_rules_and_lemmas_are_those_of_the_prover() -> None:
    assert {(each.lemma, each.operators) for each in rules.rules()} == {
        (each.lemma, each.operators) for each in rule.rules()
    }
    assert rules.summaries() == rule.lemma_summaries()


def test_an_operator_has_the_rule_that_the_prover_finds() -> None:
    used = operator_usage()
    for name in used.operators:
        static = rules.rule_of(name, pointwise=name in used.pointwise)
        found = rule.find_rule(operator_or_name(name))
        assert (static and (static.lemma, static.operators)) == (found and (found.lemma, found.operators)), name
    assert rules.rule_of("aten.arange.start_step", pointwise=False) is None


def operator_or_name(name: str) -> object:
    import torch

    space, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, space), packet, None), overload, name)


def test_claims_have_the_numbers_of_the_registry() -> None:
    assert claims.claim_numbers() == tuple(claim.number for claim in all_claims())
