"""Pooling, and the models and arguments that are refused."""

from __future__ import annotations

import json

import pytest
import torch

from orderproof.errors import SubjectError, UnsupportedCallError, UsageError
from orderproof.models import load
from orderproof.models.hf.tokenizer import configured_pooling
from orderproof.word_order.options import MAX_SENTENCES
from orderproof.word_order.sensitivity import measure_sensitivity
from orderproof.word_order.sentences import parse_sentence
from tests.word_order.lines import LINES


@pytest.mark.parametrize(
    ("stated", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None),
        ({"pooling_mode_max_tokens": True}, None),
        ({"pooling_mode": "lasttoken"}, "last"),
        ([1], None),
        ("{", None),
    ],
)
def test_pooling_configured_in_a_folder(tmp_path, stated, pooling):
    (tmp_path / "1_Pooling").mkdir()
    text = stated if isinstance(stated, str) else json.dumps(stated)
    (tmp_path / "1_Pooling" / "config.json").write_text(text)
    assert configured_pooling(tmp_path) == pooling


def test_requested_pooling(encoder):
    found = measure_sensitivity(load(str(encoder)), limit=3, pooling="first")
    assert (found.pooling, found.pooling_source) == ("first", "as requested")
    with pytest.raises(UsageError, match="expected --pooling mean, first, last; got 'max'"):
        measure_sensitivity(load(str(encoder)), pooling="max")


def test_subject_without_text_is_refused():
    with pytest.raises(
        UsageError, match="has no text input; expected a checkpoint folder with weights and a tokenizer"
    ):
        measure_sensitivity(load("arch:bert", tiny=True))


def test_too_few_sentences_and_wrong_limits_are_refused(encoder):
    subject = load(str(encoder))
    with pytest.raises(UsageError, match=r"at least 2 sentences to compare; got 1 of mine \(1 with fewer than 3 words"):
        measure_sensitivity(subject, [parse_sentence(LINES[0]), parse_sentence("no.")], source="mine")
    for limit in (1, MAX_SENTENCES + 1):
        with pytest.raises(UsageError, match=f"--limit from 2 to 1000 sentences; got {limit}"):
            measure_sensitivity(subject, limit=limit)


def test_failing_model_is_a_one_line_error(encoder, monkeypatch):
    from orderproof.models.hf.adapter import HFAdapter

    def gives(value):
        def hidden(adapter, tokens):
            if isinstance(value, Exception):
                raise value
            return value

        monkeypatch.setattr(HFAdapter, "hidden_states", hidden)

    subject = load(str(encoder))
    for value, message in (
        (UnsupportedCallError("it has none"), "bert: it has none"),
        (ValueError("what\nelse"), "bert: cannot be run: ValueError: what"),
        ((torch.full((2, 3, 4), torch.nan),), "not finite"),
    ):
        gives(value)
        with pytest.raises(SubjectError, match=message):
            measure_sensitivity(subject)


def test_model_without_hidden_states_is_unsupported(encoder):
    adapter = load(str(encoder)).build_adapter()
    with pytest.raises(UnsupportedCallError, match="does not return the states of its layers"):
        super(type(adapter), adapter).hidden_states(torch.zeros(1, 2))


def test_last_hidden_state_is_the_output(encoder, monkeypatch):
    adapter = load(str(encoder)).build_adapter()
    tokens = adapter.sample_tokens(1, 5, 0)
    with torch.no_grad():
        states, output = adapter.hidden_states(tokens), adapter.call(tokens).output
        assert len(states) == 3
        assert torch.equal(states[-1], output)
        made = adapter._outputs(tokens, {"output_hidden_states": True})
        made.last_hidden_state = 2 * made.last_hidden_state  # like a norm after the last layer
        monkeypatch.setattr(adapter, "_outputs", lambda *arguments: made)
        states = adapter.hidden_states(tokens)
    assert len(states) == 4
    assert torch.equal(states[-1], 2 * output)


def test_without_positions_gives_a_reason(encoder, monkeypatch):
    from orderproof.word_order import without_positions

    def reason():
        return measure_sensitivity(load(str(encoder)), limit=3).without_positions.reason

    monkeypatch.setattr(without_positions, "with_uniform_positions", lambda context, output, place: None)
    assert reason() == "an entry of its map is not a constant that can be made uniform"
    monkeypatch.setattr(without_positions, "execute", lambda *arguments: {}["output"])
    monkeypatch.setattr(without_positions, "with_uniform_positions", lambda context, output, place: context.captured)
    assert reason() == "the graph could not be run: KeyError: 'output'"


def test_tokenizer_without_word_boundaries_is_refused(encoder):
    subject = load(str(encoder))
    subject.tokenizer.tokenizer = object()
    with pytest.raises(UsageError, match="does not tell which token belongs to which word"):
        measure_sensitivity(subject)
