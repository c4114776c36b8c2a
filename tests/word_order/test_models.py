"""The sensitivity of models with known behaviour."""

from __future__ import annotations

import pytest
import torch

from orderproof.models import bundled, load
from orderproof.records.sensitivity import OTHER_SENTENCE, SAME_SENTENCE, WordOrderSensitivity
from orderproof.word_order.batches import build_batch
from orderproof.word_order.distances import SentenceVectors
from orderproof.word_order.perturbations import PERTURBATIONS
from orderproof.word_order.sensitivity import measure_sensitivity
from orderproof.word_order.sentences import bundled_sentences, parse_sentence
from tests.word_order.lines import LINES


def by_kind(moved) -> dict:
    return {m.perturbation: m for m in moved}


def test_bag_of_words_does_not_move_in_any_layer(bag):
    found = measure_sensitivity(load(str(bag)))
    for layer in found.layers:
        moved = by_kind(layer.effects)
        assert moved[OTHER_SENTENCE].cosine.median > 1e-2
        for kind in set(moved) - {OTHER_SENTENCE}:
            assert moved[kind].cosine.high < 1e-11, (layer.layer, kind)
            assert moved[kind].relative.high < 1e-5
            assert moved[kind].still_nearest_fraction == 1.0
    assert by_kind(found.effects)[SAME_SENTENCE].cosine.high == 0


def test_model_moves_with_positions_and_not_without(encoder_record):
    moved, still = by_kind(encoder_record.effects), by_kind(encoder_record.without_positions.effects)
    assert set(moved) == set(PERTURBATIONS) - {"word swap"} | {SAME_SENTENCE, OTHER_SENTENCE}
    for kind in set(moved) - {SAME_SENTENCE, OTHER_SENTENCE}:
        assert moved[kind].cosine.low > 1e-4
        assert still[kind].cosine.high < 1e-11
    assert still[OTHER_SENTENCE].cosine.median > 1e-2
    assert (encoder_record.without_positions.tokens, encoder_record.without_positions.sentences) == (
        8,
        19,
    )  # one word is two tokens


def test_without_positions_equals_equal_position_ids(encoder_record, encoder):
    import transformers

    model = transformers.BertModel.from_pretrained(encoder).eval()
    subject = load(str(encoder))
    rows = [build_batch(s, subject.tokenizer, pooling="mean", seed=0).rows[:1] for s in bundled_sentences()[:20]]
    numbers = torch.cat([row for row in rows if row.shape[1] == 8])
    with torch.no_grad():
        out = model(
            input_ids=numbers,
            position_ids=torch.full_like(numbers, encoder_record.without_positions.reference_position),
        )
    means = out.last_hidden_state.mean(1).double()
    vectors = SentenceVectors()
    for vector in means:
        vectors.add([SAME_SENTENCE], vector.expand(2, -1))
    assert len(means) == encoder_record.without_positions.sentences
    assert by_kind(encoder_record.without_positions.effects)[OTHER_SENTENCE].cosine.median == pytest.approx(
        vectors.summary([], seed=0)[0].cosine.median, rel=1e-4
    )


def test_causal_model_uses_its_last_token(decoder_record):
    assert (decoder_record.pooling, decoder_record.pooling_source) == ("last", "the default for causal language models")
    first, last = by_kind(decoder_record.layers[0].effects), by_kind(decoder_record.layers[-1].effects)
    assert first[OTHER_SENTENCE].cosine.high == first["reversal"].cosine.high == 0
    assert first["reversal"].share_of_unrelated is first["reversal"].still_nearest_fraction is None
    assert last["reversal"].share_of_unrelated.median > 1e-3
    assert by_kind(decoder_record.without_positions.effects)["reversal"].cosine.high < 1e-11


def test_numbers_agree_with_a_direct_computation_on_the_real_model():
    """No two sentences of one length, so that no graph is recorded."""
    import transformers

    from orderproof.models.bundled import bundled_folder

    found = measure_sensitivity(bundled(), [parse_sentence(LINES[0]), parse_sentence(LINES[2])])
    assert (found.pooling, found.pooling_source) == ("mean", "as its 1_Pooling/config.json states")
    assert found.without_positions.reason == "no two sentences have the same number of tokens"
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundled_folder())
    model = transformers.AutoModel.from_pretrained(bundled_folder()).eval()

    def states(text):
        with torch.no_grad():
            made = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        return [state.mean(1)[0].double() for state in made]

    first, other = states("the cat chased the dog."), states("a king feared his soldier in the night.")
    swapped, exchanged = states("the dog chased the cat."), states("a soldier feared his king in the night.")
    for layer, u, v, s, t in zip(found.layers, first, other, swapped, exchanged, strict=True):
        direct = [1 - torch.cosine_similarity(a, b, dim=0) for a, b in ((u, s), (v, t))]
        apart = 1 - torch.cosine_similarity(u, v, dim=0)
        moved = by_kind(layer.effects)
        assert moved[OTHER_SENTENCE].cosine.median == pytest.approx(float(apart), rel=1e-3)
        assert moved["role swap"].cosine.median == pytest.approx(float(sum(direct)) / 2, rel=1e-3, abs=1e-7)
        assert moved["role swap"].share_of_unrelated.median == pytest.approx(
            float(sum(direct) / 2 / apart), rel=1e-3, abs=1e-7
        )
    relative = sum(float((a - b).norm() / a.norm()) for a, b in ((first[-1], swapped[-1]), (other[-1], exchanged[-1])))
    assert by_kind(found.effects)["role swap"].relative.median == pytest.approx(relative / 2, rel=1e-3)
    assert found.effects == found.layers[-1].effects


def test_the_same_seed_gives_the_same_record(encoder):
    first, again, other = (measure_sensitivity(load(str(encoder)), seed=seed, limit=4) for seed in (0, 0, 1))
    assert again.model_copy(update={"seconds": 0}) == first.model_copy(update={"seconds": 0})
    assert other.effects != first.effects
    assert WordOrderSensitivity.model_validate_json(again.to_json()) == again


def test_excluded_sentences_are_counted(encoder):
    found = measure_sensitivity(
        load(str(encoder)),
        [*map(parse_sentence, LINES), parse_sentence("no."), parse_sentence("nor this.")],
        source="mine",
    )
    assert (found.sentences, found.excluded, found.source) == (3, {"fewer than 3 words": 2}, "mine")
