"""The contract of every question; a new one needs only a file of small sizes in `tests/lab/questions/`."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations

import pytest
import torch

from orderproof.errors import UsageError
from orderproof.lab.brute_force import brute_force_ceiling
from orderproof.lab.choice_question import ChoiceQuestion
from orderproof.lab.question import UNSCORED, Batch
from orderproof.lab.registry import get_question, make_question, questions
from tests.lab.small_questions import SMALL, small

EVERY = [pytest.param(question, id=name) for name, question in questions().items()]
EVERY_SMALL = [
    pytest.param(*each, id=f"{name}-{each[1]}-{number}") for name in SMALL for number, each in enumerate(small(name))
]
EVERY_CHOICE = [each for each in EVERY_SMALL if isinstance(each.values[0], ChoiceQuestion)]
MANY = 10_000


def rows(batch: Batch) -> Counter:
    return Counter(
        (tuple(tokens), tuple(targets))
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True)
    )


@pytest.mark.parametrize("question", EVERY)
def test_rows_have_the_declared_size_and_samples_are_reproducible(question):
    instance = question()
    for length in (instance.train_lengths[0], instance.test_lengths[0]):
        one, other = (instance.sample(length, 5, torch.Generator().manual_seed(3)) for _ in range(2))
        assert one.tokens.shape == one.targets.shape == (5, instance.row_length(length))
        assert one.tokens.dtype == one.targets.dtype == torch.long
        assert torch.equal(one.tokens, other.tokens)
        assert torch.equal(one.targets, other.targets)
        assert int(one.tokens.min()) >= 0
        assert int(one.tokens.max()) < instance.vocabulary
        scored = one.targets[one.targets != UNSCORED]
        assert len(scored)
        assert all(int(answer) in (instance.answer_tokens or range(instance.vocabulary)) for answer in scored)


@pytest.mark.parametrize("question", EVERY)
def test_a_sample_depends_only_on_its_generator(question):
    instance = question()
    torch.manual_seed(1)
    one = instance.sample(instance.test_lengths[0], 64, torch.Generator().manual_seed(3))
    torch.manual_seed(2)
    again = instance.sample(instance.test_lengths[0], 64, torch.Generator().manual_seed(3))
    other = instance.sample(instance.test_lengths[0], 64, torch.Generator().manual_seed(4))
    assert torch.equal(one.tokens, again.tokens)
    assert not torch.equal(one.tokens, other.tokens)


@pytest.mark.parametrize("question", [each for each in EVERY if each.values[0].requires_causal is None])
def test_a_question_for_encoders_and_decoders_is_scored_at_the_last_token_only(question):
    instance = question()
    targets = instance.sample(instance.test_lengths[0], 20, torch.Generator().manual_seed(0)).targets
    assert bool((targets[:, :-1] == UNSCORED).all())
    assert bool((targets[:, -1] != UNSCORED).all())


def test_every_question_with_a_ceiling_is_among_the_small_ones():
    assert set(SMALL) == {name for name, q in questions().items() if q().ceiling(q.test_lengths[0]) is not None}


@pytest.mark.parametrize(("instance", "length"), EVERY_SMALL)
def test_the_ceiling_agrees_with_brute_force(instance, length):
    ceiling = instance.ceiling(length)
    assert ceiling is not None
    assert ceiling.derivation
    found = brute_force_ceiling(instance, length)
    if ceiling.exact:
        assert isinstance(found, Fraction)
        assert ceiling.value == found
    else:
        assert ceiling.value == pytest.approx(float(found), abs=1e-12)


@pytest.mark.parametrize(("instance", "length"), EVERY_SMALL)
def test_the_weights_of_all_rows_sum_to_one(instance, length):
    assert sum(row.weight for row in instance.enumerate_rows(length)) == 1


@pytest.mark.parametrize(("instance", "length"), EVERY_SMALL)
def test_every_sampled_row_is_enumerated(instance, length):
    listed = {(row.tokens, row.targets) for row in instance.enumerate_rows(length)}
    assert set(rows(instance.sample(length, 200, torch.Generator().manual_seed(0)))) <= listed


@pytest.mark.parametrize(("instance", "length"), EVERY_CHOICE)
def test_a_large_enough_test_set_contains_every_row_once(instance, length):
    listed = [(row.tokens, row.targets) for row in instance.enumerate_rows(length)]
    found = rows(instance.test_batch(length, len(listed), torch.Generator().manual_seed(0)))
    assert found == Counter(listed)
    fewer = instance.test_batch(length, len(listed) - 1, torch.Generator().manual_seed(0))
    assert len(fewer.tokens) == len(listed) - 1


@pytest.mark.parametrize("name", ["even_pairs", "reverse_string", "bucket_sort", "copy"])
def test_an_exhaustive_test_set_contains_every_permutation_of_each_string(name):
    instance, length = make_question(name, {"letters": 3} if name == "copy" else {}), 4
    strings = Counter(
        tuple(tokens[:length]) for tokens in instance.test_batch(length, MANY, torch.Generator()).tokens.tolist()
    )
    for string, count in strings.items():
        assert {strings[other] for other in permutations(string)} == {count}


@pytest.mark.parametrize("question", [each for each in EVERY if each.values[0].balanced])
def test_on_a_balanced_test_set_every_bag_of_tokens_predictor_scores_the_ceiling(question):
    instance = question()
    for length in instance.test_lengths:
        ceiling = instance.ceiling(length)
        assert ceiling is not None
        groups: dict[tuple, Counter] = {}
        for (tokens, targets), count in rows(
            instance.test_batch(length, MANY, torch.Generator().manual_seed(0))
        ).items():
            for place, target in enumerate(targets):
                if target != UNSCORED:
                    known = (tokens[place], tuple(sorted(tokens)))
                    groups.setdefault(known, Counter())[target] += count
        assert instance.measure == "accuracy"
        for counted in groups.values():
            shares = {Fraction(counted[answer], counted.total()) for answer in instance.answer_tokens or ()}
            assert shares == {ceiling.value}


@pytest.mark.parametrize("question", [each for each in EVERY if not each.values[0].needs_order])
def test_a_control_has_a_ceiling_of_one(question):
    instance = question()
    assert instance.measure == "accuracy"
    assert {instance.ceiling(length).value for length in instance.test_lengths} == {1}


@pytest.mark.parametrize("question", EVERY)
def test_a_question_has_a_statement_and_a_source(question):
    assert question.statement[-1] in ".?"
    assert question.source
    assert question.name in (__import__(question.__module__, fromlist=["_"]).__doc__ or "")
    low, high = question.train_lengths
    assert 1 <= low <= high


def test_an_unknown_question_is_refused_with_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 'even_pairs'"):
        get_question("even_pair")


def test_settings_are_read_from_text():
    assert make_question("copy", {"letters": "5", "same": "true"}) == get_question("copy")(letters=5, same=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"letters": 1}, r"letters=1: input should be greater than or equal to 2"),
        ({"letters": "many"}, r"letters=many: input should be a valid integer"),
        ({"leters": 3}, r"\(letters=26, same=False\); got leters=3, which is not a setting of it"),
    ],
)
def test_invalid_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(UsageError, match=message) as caught:
        make_question("copy", settings)
    assert "\n" not in str(caught.value)
