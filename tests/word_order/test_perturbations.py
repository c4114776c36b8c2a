"""Reorderings of words, and the tokens that they move."""

from __future__ import annotations

import random

import pytest

from orderproof.models import load
from orderproof.word_order.batches import build_batch
from orderproof.word_order.perturbations import PERTURBATIONS, TokenizedWords, ngram_shuffle, perturbed_orders
from orderproof.word_order.sentences import parse_sentence
from tests.word_order.lines import LINES


def pieces(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(ord(c) for c in word) for word in text.split())


@pytest.mark.parametrize("seed", range(20))
def test_every_reordering_is_a_permutation_that_changes_the_tokens(seed):
    draw = random.Random(seed)
    sentence = TokenizedWords(pieces(" ".join(draw.choice("abc") for _ in range(draw.randint(3, 9)))), pair=None)
    for order in perturbed_orders(sentence, seed=seed).values():
        assert sorted(order) == list(range(len(sentence.word_tokens)))
        assert sentence.is_changed_by(order)


def test_order_of_each_kind():
    found = perturbed_orders(TokenizedWords(pieces("a b c d e f g"), pair=(1, 5)), seed=0)
    assert set(found) == set(PERTURBATIONS) - {"word swap"}
    assert found["role swap"] == (0, 5, 2, 3, 4, 1, 6)
    assert found["reversal"] == (6, 5, 4, 3, 2, 1, 0)
    i = min(k for k, x in enumerate(found["adjacent swap"]) if x != k)
    assert found["adjacent swap"] == (*range(i), i + 1, i, *range(i + 2, 7))
    for n in (2, 3):
        runs = [tuple(range(k, min(k + n, 7))) for k in range(0, 7, n)]
        order = found[f"{n}-gram shuffle"]
        starts = {order.index(run[0]): run for run in runs}
        assert tuple(k for _, run in sorted(starts.items()) for k in run) == order


def test_word_swap_takes_non_adjacent_words_with_equally_many_tokens():
    for seed in range(20):
        order = perturbed_orders(TokenizedWords(pieces("aa b cc d ee")), seed=seed)["word swap"]
        first, second = (k for k, x in enumerate(order) if x != k)
        assert (first % 2, second % 2) in {(0, 0), (1, 1)}
        assert second - first >= 2


def test_orders_that_change_nothing_are_omitted():
    assert perturbed_orders(TokenizedWords(pieces("a a a a")), seed=0) == {}
    assert "reversal" not in perturbed_orders(TokenizedWords(pieces("a b a")), seed=0)
    assert ngram_shuffle(3)(TokenizedWords(pieces("a b c")), random.Random(0)) is None


def test_orders_depend_on_the_seed_only():
    sentence = TokenizedWords(pieces("a b c d e f g h i"))
    assert perturbed_orders(sentence, seed=1) == perturbed_orders(sentence, seed=1)
    assert perturbed_orders(sentence, seed=1) != perturbed_orders(sentence, seed=2)


def test_rows_keep_the_tokens_and_the_places_of_special_tokens(encoder):
    subject = load(str(encoder))
    made = build_batch(parse_sentence(LINES[2]), subject.tokenizer, pooling="mean", seed=0)
    texts = [[subject.tokenizer.tokenizer.convert_ids_to_tokens(int(n)) for n in row] for row in made.rows]
    assert texts[0] == ["[CLS]", *["a", "king", "feared", "his", "soldi", "##er", "in", "the", "night", "."], "[SEP]"]
    assert texts[2] == ["[CLS]", *["a", "soldi", "##er", "feared", "his", "king", "in", "the", "night", "."], "[SEP]"]
    for row in texts:
        assert sorted(row) == sorted(texts[0])
        assert (row[0], row[-2:]) == ("[CLS]", [".", "[SEP]"])
        assert row[row.index("soldi") + 1] == "##er"


def test_first_word_gets_the_marker_of_a_preceding_space(decoder):
    subject = load(str(decoder))
    made = build_batch(parse_sentence("the dog chased the cat."), subject.tokenizer, pooling="last", seed=0)
    (reversed_row,) = (row for kind, row in zip(made.perturbations, made.rows[1:], strict=True) if kind == "reversal")
    assert subject.tokenizer.tokenizer.decode(reversed_row) == " cat the chased dog the."


def test_no_space_is_added_if_it_becomes_a_token(encoder):
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    marked = {f"\u2581{w}": k for k, w in enumerate(["the", "dog", "chased", "cat"])} | {
        "\u2581": 4,
        ".": 5,
        "[UNK]": 6,
    }
    made = Tokenizer(models.Unigram([(w, -1.0 if len(w) > 1 else -5.0) for w in marked], unk_id=6))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    subject = load(str(encoder))
    subject.tokenizer.tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    assert subject.tokenizer.tokenizer(" the")["input_ids"] == [4, 0]
    cut = subject.tokenizer.tokenize_words(["the", "dog", "chased", "the", "cat"], ".")
    assert cut.token_ids == (0, 1, 2, 0, 3, 5)
    assert cut.word_indices == (0, 1, 2, 3, 4, None)


def test_rows_equal_the_tokenized_reordered_sentences(encoder):
    subject = load(str(encoder))
    for line in LINES:
        made = build_batch(parse_sentence(line), subject.tokenizer, pooling="mean", seed=3)
        for example, row in zip(made.examples, made.rows[2:], strict=True):
            assert subject.tokenizer.tokenizer(example.after)["input_ids"] == row.tolist()


@pytest.mark.parametrize(
    ("line", "pooling", "why"),
    [
        ("two words.", "mean", "fewer than 3 words"),
        ("cat cat cat.", "mean", "every reordering has the same tokens"),
        (" ".join(["the cat"] * 300), "mean", "more than 512 tokens"),
        ("the cat \u0000 chased.", "mean", "a token does not belong to exactly one word"),
    ],
)
def test_unusable_sentence_is_excluded_with_a_reason(encoder, line, pooling, why):
    assert build_batch(parse_sentence(line), load(str(encoder)).tokenizer, pooling=pooling, seed=0) == why


def test_pooled_token_does_not_move(decoder):
    words = load(str(decoder)).tokenizer
    assert "its first token" in build_batch(parse_sentence(LINES[0]), words, pooling="first", seed=0)
    without_end = build_batch(parse_sentence("the dog chased the cat"), words, pooling="last", seed=0)
    assert without_end.examples[0].before == "the dog chased the cat."
