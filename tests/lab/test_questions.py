"""What every question promises; a new one is tested by being in its folder and among the small ones."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations

import pytest
import torch

from orderproof.errors import UsageError
from orderproof.lab.asking import get, make, questions
from orderproof.lab.brute_force import brute_force
from orderproof.lab.choices import ChoiceQuestion
from orderproof.lab.question import UNSCORED, Batch
from tests.lab.small import SMALL, small

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
def test_rows_are_of_the_stated_size_and_draws_repeat(question):
    asked = question()
    for length in (asked.train_lengths[0], asked.test_lengths[0]):
        one, other = (asked.draw(length, 5, torch.Generator().manual_seed(3)) for _ in range(2))
        assert one.tokens.shape == one.targets.shape == (5, asked.tokens(length))
        assert one.tokens.dtype == one.targets.dtype == torch.long
        assert torch.equal(one.tokens, other.tokens)
        assert torch.equal(one.targets, other.targets)
        assert int(one.tokens.min()) >= 0
        assert int(one.tokens.max()) < asked.vocabulary
        scored = one.targets[one.targets != UNSCORED]
        assert len(scored)
        assert all(int(answer) in (asked.answers or range(asked.vocabulary)) for answer in scored)


@pytest.mark.parametrize("question", EVERY)
def test_a_draw_reads_its_generator_and_no_other(question):
    asked = question()
    torch.manual_seed(1)
    one = asked.draw(asked.test_lengths[0], 64, torch.Generator().manual_seed(3))
    torch.manual_seed(2)
    again = asked.draw(asked.test_lengths[0], 64, torch.Generator().manual_seed(3))
    other = asked.draw(asked.test_lengths[0], 64, torch.Generator().manual_seed(4))
    assert torch.equal(one.tokens, again.tokens)
    assert not torch.equal(one.tokens, other.tokens)


@pytest.mark.parametrize("question", [each for each in EVERY if each.values[0].causal is None])
def test_what_is_asked_of_encoders_and_decoders_is_asked_where_both_see_the_whole_row(question):
    asked = question()
    targets = asked.draw(asked.test_lengths[0], 20, torch.Generator().manual_seed(0)).targets
    assert bool((targets[:, :-1] == UNSCORED).all())
    assert bool((targets[:, -1] != UNSCORED).all())


def test_every_question_with_a_ceiling_is_among_the_small_ones():
    assert set(SMALL) == {name for name, q in questions().items() if q().ceiling(q.test_lengths[0]) is not None}


@pytest.mark.parametrize(("asked", "length"), EVERY_SMALL)
def test_the_ceiling_is_what_brute_force_finds(asked, length):
    ceiling = asked.ceiling(length)
    assert ceiling is not None
    assert ceiling.how
    found = brute_force(asked, length)
    if ceiling.exact:
        assert isinstance(found, Fraction)
        assert ceiling.value == found
    else:
        assert ceiling.value == pytest.approx(float(found), abs=1e-12)


@pytest.mark.parametrize(("asked", "length"), EVERY_SMALL)
def test_the_weights_of_all_rows_add_up_to_one(asked, length):
    assert sum(row.weight for row in asked.everything(length)) == 1


@pytest.mark.parametrize(("asked", "length"), EVERY_SMALL)
def test_every_row_drawn_is_one_of_those_listed(asked, length):
    listed = {(row.tokens, row.targets) for row in asked.everything(length)}
    assert set(rows(asked.draw(length, 200, torch.Generator().manual_seed(0)))) <= listed


@pytest.mark.parametrize(("asked", "length"), EVERY_CHOICE)
def test_where_the_rows_are_few_the_test_set_is_all_of_them(asked, length):
    listed = [(row.tokens, row.targets) for row in asked.everything(length)]
    found = rows(asked.test(length, len(listed), torch.Generator().manual_seed(0)))
    assert found == Counter(listed)
    fewer = asked.test(length, len(listed) - 1, torch.Generator().manual_seed(0))
    assert len(fewer.tokens) == len(listed) - 1


@pytest.mark.parametrize("name", ["even_pairs", "reverse_string", "bucket_sort", "copy"])
def test_a_test_set_of_all_rows_holds_every_order_of_each_string(name):
    asked, length = make(name, {"letters": 3} if name == "copy" else {}), 4
    strings = Counter(tuple(tokens[:length]) for tokens in asked.test(length, MANY, torch.Generator()).tokens.tolist())
    for string, count in strings.items():
        assert {strings[other] for other in permutations(string)} == {count}


@pytest.mark.parametrize("question", [each for each in EVERY if each.values[0].balanced])
def test_on_a_balanced_test_set_every_blind_reader_scores_the_ceiling(question):
    asked = question()
    for length in asked.test_lengths:
        ceiling = asked.ceiling(length)
        assert ceiling is not None
        groups: dict[tuple, Counter] = {}
        for (tokens, targets), count in rows(asked.test(length, MANY, torch.Generator().manual_seed(0))).items():
            for place, target in enumerate(targets):
                if target != UNSCORED:
                    known = (tokens[place], tuple(sorted(tokens)))
                    groups.setdefault(known, Counter())[target] += count
        assert asked.measure == "accuracy"
        for counted in groups.values():
            shares = {Fraction(counted[answer], counted.total()) for answer in asked.answers or ()}
            assert shares == {ceiling.value}


@pytest.mark.parametrize("question", [each for each in EVERY if not each.values[0].needs_order])
def test_a_control_has_a_ceiling_of_one(question):
    asked = question()
    assert asked.measure == "accuracy"
    assert {asked.ceiling(length).value for length in asked.test_lengths} == {1}


@pytest.mark.parametrize("question", EVERY)
def test_a_question_says_what_it_asks_and_where_it_is_from(question):
    assert question.statement[-1] in ".?"
    assert question.source
    assert question.name in (__import__(question.__module__, fromlist=["_"]).__doc__ or "")
    low, high = question.train_lengths
    assert 1 <= low <= high


def test_an_unknown_question_is_refused_with_the_closest_one():
    with pytest.raises(UsageError, match="did you mean 'even_pairs'"):
        get("even_pair")


def test_settings_are_read_from_text():
    assert make("copy", {"letters": "5", "same": "true"}) == get("copy")(letters=5, same=True)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"letters": 1}, r"letters=1: input should be greater than or equal to 2"),
        ({"letters": "many"}, r"letters=many: input should be a valid integer"),
        ({"leters": 3}, r"\(letters=26, same=False\); got leters=3, which it does not have"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_one_line(settings, told):
    with pytest.raises(UsageError, match=told) as caught:
        make("copy", settings)
    assert "\n" not in str(caught.value)
