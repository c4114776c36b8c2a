"""Each deviating convention is found, and nothing else; libraries have theirs; bad functions get one line."""

import inspect
from dataclasses import replace

import pytest
import torch

from orderproof.conventions import find_functions, function_names, measure, questions_of
from orderproof.conventions.attention.own import own_attention
from orderproof.conventions.library import libraries
from orderproof.conventions.positions.own import own_table
from orderproof.conventions.rotation.own import own_rotation
from orderproof.errors import SubjectError, UsageError
from tests.conventions import deviating
from tests.conventions.deviating import DEVIATIONS, ROTATIONS, TABLES

HERE = deviating.__file__
USUAL = {
    "boolean_mask": "True is seen",
    "causal_fewer_queries": "aligned to the last key",
    "causal_more_queries": "aligned to the last key; queries before it give NaN",
    "causal_past": "takes none",
    "default_scale": "1 / sqrt(width)",
    "float_mask": "1.0 is added to the score",
    "grouped_heads": "neighbours share one",
    "integer_mask": "1 is added to the score",
    "lengths": "the first keys; queries of pads give what others give",
    "mask_and_causal": "both hold",
    "mask_of_four_axes": "the keys of each row",
    "mask_of_three_axes": "[row, query, key]",
    "mask_of_two_axes": "[query, key]",
    "masked_row": "NaN",
    "narrow_scores": "kept wider until the softmax",
    "query_lengths": "NaN",
    "sinks": "a score without a key, which takes part of the softmax",
    "smallest_number_row": "the mean of all values",
    "soft_cap": "before the mask",
    "window": "itself, 1 before and 0 after (causal); itself, 1 before and 1 after (both sides)",
}
INSTALLED = [
    pytest.param(name, marks=[pytest.mark.slow] if name == "torch_compiled" else [])
    for name, each in libraries().items()
    if each.version_here
]
# A deviation that a question cannot leave alone: what it changes besides.
MASKS = {
    "mask_and_causal",
    "mask_of_four_axes",
    "mask_of_two_axes",
    "mask_of_three_axes",
    "masked_row",
    "smallest_number_row",
    "soft_cap",
}
ALSO = {
    "booleans_added": {"mask_and_causal", "soft_cap"},
    "mask_multiplied": MASKS | {"float_mask"},
    "causal_to_the_first_key": {"causal_more_queries"},
    "causal_replaces_mask": MASKS | {"integer_mask", "float_mask"},
    "masked_rows_are_zeros": {"causal_more_queries", "query_lengths"},
    "masked_rows_are_means": {"causal_more_queries", "query_lengths"},
}


def answers_of(function):
    return measure([function]).functions[0].answers


def test_every_question_of_attention_has_its_usual_answer():
    assert answers_of(own_attention(deviating.attention, "usual", "")) == USUAL


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviating_attention_differs_in_its_convention(name):
    changes, expected = DEVIATIONS[name]
    found = answers_of(own_attention(deviating.deviating(**changes), name, ""))
    changed = {question for question in USUAL if found[question] != USUAL[question]}
    assert {question: found[question] for question in expected} == expected
    assert changed - set(expected) <= ALSO.get(name, set())


@pytest.mark.parametrize("name", ROTATIONS)
def test_a_deviating_rotation_differs_in_its_convention(name):
    changes, expected = ROTATIONS[name]
    usual = answers_of(own_rotation(deviating.rotate, "usual", ""))

    def rotate(x, positions):
        return deviating.rotate(x, positions, **changes)

    found = answers_of(own_rotation(rotate, name, ""))
    assert {question: found[question] for question in expected} == expected
    changed = {question for question in usual if found[question] != usual[question]}
    assert changed - set(expected) <= {"far_positions"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_answers_beyond_its_ends(name):
    function, expected = TABLES[name]
    table = replace(own_table(function, name, ""), length=16)
    found = answers_of(table)
    assert {question: found[question] for question in expected} == expected
    assert found["narrow_integers"] == "the same as of 64 bits"


def test_the_end_of_a_table_is_found_by_calls():
    assert own_table(deviating.of_rows, "f", "").length == 16
    assert own_table(deviating.of_rows, "f", "").layout == "[row, token, width]"
    assert own_table(deviating.rotate, "f", "") is None


def test_layouts_are_found_by_calls():
    assert own_attention(deviating.tokens_before_heads, "f", "").layout == "[row, token, head, width]"
    single = own_attention(deviating.without_heads, "f", "")
    assert single.layout == "[row, token, width]"
    assert answers_of(single)["grouped_heads"] == "refused"
    assert answers_of(single)["causal_fewer_queries"] == "aligned to the first key"
    offset = own_rotation(deviating.rotate_from, "f", "")
    assert offset.layout == "[row, token, head, width]"
    assert answers_of(offset)["pairs"] == "halves"


def test_an_answer_that_is_refused_leaves_the_others():
    found = answers_of(own_attention(deviating.refuses, "f", ""))
    assert found["causal_fewer_queries"] == "refused"
    assert found["boolean_mask"] == "True is ignored"
    assert found["window"] == "takes none"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "sums",
            "expected an attention function of q, k, v in one of the layouts .*; equal scores do not give the mean",
        ),
        ("answers", "nothing is named 'answers' there"),
        ("DEVIATIONS", "expected a function; got dict"),
        ("deviating", "expected a rotary function of vectors"),
    ],
)
def test_a_function_that_is_neither_is_refused_in_one_line(name, message):
    with pytest.raises(SubjectError, match=message) as raised:
        find_functions([f"{HERE}:{name}"])
    assert "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore")
def test_names_are_looked_up():
    assert [f.name for f in find_functions(["torch.sdpa", f"{HERE}:attention"])] == ["torch.sdpa", f"{HERE}:attention"]
    with pytest.raises(UsageError, match="got 'torch.spda'; did you mean 'torch.sdpa'"):
        find_functions(["torch.spda"])
    assert set(function_names()) >= {"torch.sdpa", "torch.flex", "transformers.eager", "transformers.llama_rotary"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", INSTALLED)
def test_every_function_of_a_library_answers_what_it_takes(library):
    for found in measure(find_functions([library])).functions:
        decided = [text for text in found.answers.values() if text not in ("takes none", "refused")]
        assert len(decided) >= (1 if found.kind == "positions" else 3), found
        assert not any("not done" in text for text in decided)


def test_a_window_that_hides_nothing_is_ignored():
    def attention(query, key, value, window=None, causal=False):
        return deviating.attention(query, key, value, causal=causal)

    found = answers_of(own_attention(attention, "f", ""))
    assert found["window"] == "ignored (causal); ignored (both sides)"


def test_functions_are_compared_in_what_both_take():
    mine, torchs = measure([*find_functions([f"{HERE}:attention", "torch.sdpa"])], compare=True).functions
    assert "causal_fewer_queries" in mine.differs_from(torchs)
    assert "window" not in mine.differs_from(torchs)
    assert mine.differs_from(mine) == ()


def test_every_question_says_what_it_breaks():
    for kind in ("attention", "rotation", "positions"):
        for question in questions_of(kind):
            assert question.text.endswith("?")
            assert question.breaks.endswith(".")
            assert len(inspect.signature(question.ask).parameters) == 1


def test_numbers_are_read_off_the_call():
    usual = own_attention(deviating.attention, "usual", "")
    weights = usual.weights(2, 3, mask=torch.tensor([[True, False, True], [True, True, True]]))[0, 0]
    assert torch.allclose(weights, torch.tensor([[0.5, 0.0, 0.5], [1 / 3, 1 / 3, 1 / 3]]))
