"""Words that change places: the changes, the sentences, the distances, and what is said of models known by hand."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch

from orderproof.auditing import sensitivity as measuring
from orderproof.auditing.distances import Cloud, cosine_distance, pooled, relative_distance, spread
from orderproof.auditing.moved_rows import prepare
from orderproof.auditing.rearranging import KINDS, Movable, orders, shuffle_of
from orderproof.auditing.sensitivity import sensitivity
from orderproof.auditing.sentences import LARGEST, Sentence, bundled_sentences, parse, read_sentences
from orderproof.errors import SubjectError, Unsupported, UsageError
from orderproof.sensitivity_record import OTHER, SAME, Sensitivity
from orderproof.subjects import bundled, load
from orderproof.subjects.words import stated_pooling

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
LINES = (
    "the *cat* chased the *dog*.",
    "the *wolf* watched the *sheep*.",
    "a *king* feared his *soldier* in the night.",
)


# ---------------------------------------------------------------- models


def words_of_the_list() -> list[str]:
    return sorted({word for s in (*bundled_sentences(), *map(parse, LINES)) for word in s.words})


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    """A tiny BERT with random weights, large enough to tell sentences apart, and a tokenizer of whole words."""
    import transformers

    folder = tmp_path_factory.mktemp("models") / "bert"
    torch.manual_seed(0)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "soldi", "##er"]
    vocabulary = special + [w for w in words_of_the_list() if w != "soldier"]
    config = transformers.BertConfig(**SIZES, vocab_size=len(vocabulary), initializer_range=0.4)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizer(vocab={w: k for k, w in enumerate(vocabulary)})
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bag(encoder, tmp_path_factory) -> Path:
    """The same with its position table emptied."""
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(encoder, tmp_path_factory.mktemp("models") / "bag")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.position_embeddings.weight"].zero_()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def decoder(tmp_path_factory) -> Path:
    """A tiny Llama whose tokenizer marks words by the space before them."""
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    folder = tmp_path_factory.mktemp("models") / "llama"
    torch.manual_seed(0)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([" " + s.text for s in bundled_sentences()], vocab_size=600, show_progress=False)
    config = transformers.LlamaConfig(**SIZES, vocab_size=600, initializer_range=0.4)
    transformers.LlamaModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return folder


@pytest.fixture(scope="module")
def of_encoder(encoder) -> Sensitivity:
    return sensitivity(load(str(encoder)))


@pytest.fixture(scope="module")
def of_decoder(decoder) -> Sensitivity:
    return sensitivity(load(str(decoder)))


def by_kind(moved) -> dict:
    return {m.kind: m for m in moved}


# ---------------------------------------------------------------- sentences


def test_a_marked_pair_is_read_and_its_marks_are_gone():
    assert parse(LINES[0]) == Sentence(("the", "cat", "chased", "the", "dog"), ".", (1, 4))
    assert parse("is *he*, or is *she*, here?").pair == (1, 4)
    assert parse("is *he*, or is *she*, here?").text == "is he, or is she, here?"


def test_other_asterisks_stay():
    for line in ("two * three * four", "only *one* here", "*a* *b* *c*", "x*y* is *z"):
        assert (parse(line).text, parse(line).pair) == (line, None)


def test_every_bundled_sentence_has_a_pair_and_none_is_there_twice():
    found = bundled_sentences()
    assert len(found) == 40
    assert all(s.pair and s.end == "." and "*" not in s.text for s in found)
    assert len({tuple(sorted(s.words)) for s in found}) == len(found)


def test_a_file_is_read_without_empty_and_repeated_lines(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes("\ufeffone two three\n\n  one  two three\r\nfour *five* six *seven*!\n".encode())
    assert [s.text for s in read_sentences(file)] == ["one two three", "four five six seven!"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"fine\n\xff\n", "line 2 is not UTF-8"),
        (b"a\x00b\n", "line 1 holds a zero byte"),
        (b"a " * 3000, "line 1 has 6000 characters, more than 4000"),
        (b"\n \n", "the file has none"),
        (b"a" * (LARGEST + 1), "at most 8 MB"),
    ],
)
def test_a_file_that_is_no_list_of_sentences_is_refused(tmp_path, content, said):
    file = tmp_path / "text.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_sentences(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_sentences(tmp_path / "none.txt")
    with pytest.raises(UsageError, match=r"[Ii]s a directory"):
        read_sentences(tmp_path)


# ---------------------------------------------------------------- changes of order


def pieces(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(ord(c) for c in word) for word in text.split())


@pytest.mark.parametrize("seed", range(20))
def test_every_change_is_a_permutation_that_changes_the_tokens(seed):
    draw = random.Random(seed)
    sentence = Movable(pieces(" ".join(draw.choice("abc") for _ in range(draw.randint(3, 9)))), pair=None)
    for order in orders(sentence, seed=seed).values():
        assert sorted(order) == list(range(len(sentence.pieces)))
        assert sentence.changes(order)


def test_each_kind_does_what_its_name_says():
    found = orders(Movable(pieces("a b c d e f g"), pair=(1, 5)), seed=0)
    assert set(found) == set(KINDS) - {"word swap"}
    assert found["role swap"] == (0, 5, 2, 3, 4, 1, 6)
    assert found["reversal"] == (6, 5, 4, 3, 2, 1, 0)
    i = min(k for k, x in enumerate(found["adjacent swap"]) if x != k)
    assert found["adjacent swap"] == (*range(i), i + 1, i, *range(i + 2, 7))
    for n in (2, 3):
        runs = [tuple(range(k, min(k + n, 7))) for k in range(0, 7, n)]
        order = found[f"{n}-gram shuffle"]
        starts = {order.index(run[0]): run for run in runs}
        assert tuple(k for _, run in sorted(starts.items()) for k in run) == order


def test_words_swapped_in_unmarked_sentences_have_as_many_tokens_and_are_no_neighbours():
    for seed in range(20):
        order = orders(Movable(pieces("aa b cc d ee")), seed=seed)["word swap"]
        first, second = (k for k, x in enumerate(order) if x != k)
        assert (first % 2, second % 2) in {(0, 0), (1, 1)}
        assert second - first >= 2


def test_what_changes_nothing_is_no_change():
    assert orders(Movable(pieces("a a a a")), seed=0) == {}
    assert "reversal" not in orders(Movable(pieces("a b a")), seed=0)
    assert shuffle_of(3)(Movable(pieces("a b c")), random.Random(0)) is None


def test_the_seed_decides():
    sentence = Movable(pieces("a b c d e f g h i"))
    assert orders(sentence, seed=1) == orders(sentence, seed=1)
    assert orders(sentence, seed=1) != orders(sentence, seed=2)


# ---------------------------------------------------------------- tokens


def test_tokens_stay_a_bag_and_special_ones_and_the_full_stop_stay_in_place(encoder):
    subject = load(str(encoder))
    made = prepare(parse(LINES[2]), subject.words, pooling="mean", seed=0)
    texts = [[subject.words.tokenizer.convert_ids_to_tokens(int(n)) for n in row] for row in made.rows]
    assert texts[0] == ["[CLS]", *["a", "king", "feared", "his", "soldi", "##er", "in", "the", "night", "."], "[SEP]"]
    assert texts[2] == ["[CLS]", *["a", "soldi", "##er", "feared", "his", "king", "in", "the", "night", "."], "[SEP]"]
    for row in texts:
        assert sorted(row) == sorted(texts[0])
        assert (row[0], row[-2:]) == ("[CLS]", [".", "[SEP]"])
        assert row[row.index("soldi") + 1] == "##er"


def test_a_first_word_is_marked_as_all_others_are(decoder):
    subject = load(str(decoder))
    made = prepare(parse("the dog chased the cat."), subject.words, pooling="last", seed=0)
    (reversed_row,) = (row for kind, row in zip(made.kinds, made.rows[1:], strict=True) if kind == "reversal")
    assert subject.words.tokenizer.decode(reversed_row) == " cat the chased dog the."


def test_a_tokenizer_that_makes_a_token_of_the_space_gets_none(encoder):
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
    subject.words.tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    assert subject.words.tokenizer(" the")["input_ids"] == [4, 0]
    cut = subject.words.cut(["the", "dog", "chased", "the", "cat"], ".")
    assert cut.numbers == (0, 1, 2, 0, 3, 5)
    assert cut.places == (0, 1, 2, 3, 4, None)


def test_moved_rows_are_what_the_tokenizer_makes_of_the_moved_sentence(encoder):
    subject = load(str(encoder))
    for line in LINES:
        made = prepare(parse(line), subject.words, pooling="mean", seed=3)
        for example, row in zip(made.examples, made.rows[2:], strict=True):
            assert subject.words.tokenizer(example.after)["input_ids"] == row.tolist()


@pytest.mark.parametrize(
    ("line", "pooling", "why"),
    [
        ("two words.", "mean", "fewer than 3 words"),
        ("cat cat cat.", "mean", "no change of order changes it"),
        (" ".join(["the cat"] * 300), "mean", "more than 512 tokens"),
        ("the cat \u0000 chased.", "mean", "a token belongs to no one word"),
    ],
)
def test_a_sentence_that_cannot_be_used_is_left_out_with_its_reason(encoder, line, pooling, why):
    assert prepare(parse(line), load(str(encoder)).words, pooling=pooling, seed=0) == why


def test_a_token_whose_vector_is_taken_does_not_move(decoder):
    words = load(str(decoder)).words
    assert "its first token" in prepare(parse(LINES[0]), words, pooling="first", seed=0)
    without_end = prepare(parse("the dog chased the cat"), words, pooling="last", seed=0)
    assert without_end.examples[0].before == "the dog chased the cat."


# ---------------------------------------------------------------- distances


def test_distances_are_those_of_the_formulas_and_keep_their_digits_near_zero():
    u, v = torch.randn(2, 50, dtype=torch.float64)
    assert float(cosine_distance(u, v)) == pytest.approx(1 - float(torch.cosine_similarity(u, v, dim=0)))
    assert float(relative_distance(u, v)) == pytest.approx(float((u - v).norm() / u.norm()))
    assert float(cosine_distance(u, u)) == float(relative_distance(u, u)) == 0
    away = torch.zeros(50, dtype=torch.float64)
    away[0], u[0] = 1e-9, 0.0
    assert float(cosine_distance(u, u + away)) == pytest.approx(0.5e-18 / float(u @ u), rel=1e-6)


def test_pooling():
    states = torch.randn(2, 5, 3)
    assert torch.equal(pooled(states, "mean"), states.double().mean(1))
    assert torch.equal(pooled(states, "first"), states[:, 0].double())
    assert torch.equal(pooled(states, "last"), states[:, 4].double())


def test_a_median_lies_in_its_interval_which_the_seed_decides():
    values = torch.randn(30, dtype=torch.float64)
    found = spread(values, 0)
    assert found.low < found.median < found.high
    assert spread(values, 0) == found != spread(values, 1)
    assert spread(values[:1], 0).low == spread(values[:1], 0).high == float(values[0])


def test_shares_are_of_the_median_distance_to_the_others():
    cloud = Cloud()
    for angle in (0.0, 0.5, 1.2):
        turned = torch.tensor([angle, angle + 0.1], dtype=torch.float64)
        cloud.add(["reversal"], torch.stack([turned.cos(), turned.sin()], dim=1))
    other, moved = cloud.summary(["reversal"], seed=0)
    gaps = [[1 - torch.tensor(a - b).cos() for b in (0, 0.5, 1.2) if a != b] for a in (0, 0.5, 1.2)]
    medians = [float(sum(g)) / 2 for g in gaps]
    step = 1 - float(torch.tensor(0.1, dtype=torch.float64).cos())
    assert other.cosine.median == pytest.approx(sorted(medians)[1], rel=1e-5)
    assert moved.share.median == pytest.approx(sorted(step / m for m in medians)[1], rel=1e-5)
    assert (moved.nearer, moved.sentences) == (1.0, 3)


# ---------------------------------------------------------------- what is said of models


def test_a_bag_of_words_is_not_moved_in_any_layer(bag):
    found = sensitivity(load(str(bag)))
    for layer in found.layers:
        moved = by_kind(layer.moved)
        assert moved[OTHER].cosine.median > 1e-2
        for kind in set(moved) - {OTHER}:
            assert moved[kind].cosine.high < 1e-11, (layer.layer, kind)
            assert moved[kind].relative.high < 1e-5
            assert moved[kind].nearer == 1.0
    assert by_kind(found.moved)[SAME].cosine.high == 0


def test_a_model_with_positions_is_moved_and_without_them_it_is_not(of_encoder):
    moved, still = by_kind(of_encoder.moved), by_kind(of_encoder.without.moved)
    assert set(moved) == set(KINDS) - {"word swap"} | {SAME, OTHER}
    for kind in set(moved) - {SAME, OTHER}:
        assert moved[kind].cosine.low > 1e-4
        assert still[kind].cosine.high < 1e-11
    assert still[OTHER].cosine.median > 1e-2
    assert (of_encoder.without.tokens, of_encoder.without.sentences) == (8, 19)  # one word is two tokens


def test_without_positions_is_the_model_with_every_token_at_one_place(of_encoder, encoder):
    import transformers

    model = transformers.BertModel.from_pretrained(encoder).eval()
    subject = load(str(encoder))
    rows = [prepare(s, subject.words, pooling="mean", seed=0).rows[:1] for s in bundled_sentences()[:20]]
    numbers = torch.cat([row for row in rows if row.shape[1] == 8])
    with torch.no_grad():
        out = model(input_ids=numbers, position_ids=torch.full_like(numbers, of_encoder.without.place))
    vectors = out.last_hidden_state.mean(1).double()
    cloud = Cloud()
    for vector in vectors:
        cloud.add([SAME], vector.expand(2, -1))
    assert len(vectors) == of_encoder.without.sentences
    assert by_kind(of_encoder.without.moved)[OTHER].cosine.median == pytest.approx(
        cloud.summary([], seed=0)[0].cosine.median, rel=1e-4
    )


def test_a_causal_model_is_read_at_its_last_token_which_tells_nothing_at_first(of_decoder):
    assert (of_decoder.pooling, of_decoder.pooling_from) == ("last", "as of a causal language model")
    first, last = by_kind(of_decoder.layers[0].moved), by_kind(of_decoder.layers[-1].moved)
    assert first[OTHER].cosine.high == first["reversal"].cosine.high == 0
    assert first["reversal"].share is first["reversal"].nearer is None
    assert last["reversal"].share.median > 1e-3
    assert by_kind(of_decoder.without.moved)["reversal"].cosine.high < 1e-11


def test_numbers_are_those_worked_out_by_hand_on_the_real_model():
    """No two sentences of one length, so that no graph is recorded."""
    import transformers

    from orderproof.subjects.bundled import bundled_folder

    found = sensitivity(bundled(), [parse(LINES[0]), parse(LINES[2])])
    assert (found.pooling, found.pooling_from) == ("mean", "as its 1_Pooling/config.json states")
    assert found.without.reason == "no two sentences have as many tokens"
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundled_folder())
    model = transformers.AutoModel.from_pretrained(bundled_folder()).eval()

    def states(text):
        with torch.no_grad():
            made = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        return [state.mean(1)[0].double() for state in made]

    first, other = states("the cat chased the dog."), states("a king feared his soldier in the night.")
    swapped, exchanged = states("the dog chased the cat."), states("a soldier feared his king in the night.")
    for layer, u, v, s, t in zip(found.layers, first, other, swapped, exchanged, strict=True):
        by_hand = [1 - torch.cosine_similarity(a, b, dim=0) for a, b in ((u, s), (v, t))]
        apart = 1 - torch.cosine_similarity(u, v, dim=0)
        moved = by_kind(layer.moved)
        assert moved[OTHER].cosine.median == pytest.approx(float(apart), rel=1e-3)
        assert moved["role swap"].cosine.median == pytest.approx(float(sum(by_hand)) / 2, rel=1e-3, abs=1e-7)
        assert moved["role swap"].share.median == pytest.approx(float(sum(by_hand) / 2 / apart), rel=1e-3, abs=1e-7)
    relative = sum(float((a - b).norm() / a.norm()) for a, b in ((first[-1], swapped[-1]), (other[-1], exchanged[-1])))
    assert by_kind(found.moved)["role swap"].relative.median == pytest.approx(relative / 2, rel=1e-3)
    assert found.moved == found.layers[-1].moved


def test_the_same_seed_gives_the_same_record(encoder, of_encoder):
    again = sensitivity(load(str(encoder)))
    assert again.model_copy(update={"seconds": 0}) == of_encoder.model_copy(update={"seconds": 0})
    assert sensitivity(load(str(encoder)), seed=1, limit=4).moved != sensitivity(load(str(encoder)), limit=4).moved
    assert Sensitivity.model_validate_json(again.to_json()) == again


def test_left_out_sentences_are_counted(encoder):
    found = sensitivity(load(str(encoder)), [*map(parse, LINES), parse("no."), parse("nor this.")], source="mine")
    assert (found.sentences, found.left_out, found.source) == (3, {"fewer than 3 words": 2}, "mine")


# ---------------------------------------------------------------- pooling and refusals


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
def test_the_pooling_a_folder_states(tmp_path, stated, pooling):
    (tmp_path / "1_Pooling").mkdir()
    text = stated if isinstance(stated, str) else json.dumps(stated)
    (tmp_path / "1_Pooling" / "config.json").write_text(text)
    assert stated_pooling(tmp_path) == pooling


def test_pooling_can_be_asked_for(encoder):
    found = sensitivity(load(str(encoder)), limit=3, pooling="first")
    assert (found.pooling, found.pooling_from) == ("first", "as asked")
    with pytest.raises(UsageError, match="expected --pooling mean, first, last; got 'max'"):
        sensitivity(load(str(encoder)), pooling="max")


def test_a_subject_without_text_is_refused():
    with pytest.raises(UsageError, match="reads no text; expected a checkpoint folder with weights and a tokenizer"):
        sensitivity(load("arch:bert", tiny=True))


def test_too_few_sentences_and_wrong_limits_are_refused(encoder):
    subject = load(str(encoder))
    with pytest.raises(UsageError, match=r"at least 2 sentences to compare; got 1 of mine \(1 with fewer than 3 words"):
        sensitivity(subject, [parse(LINES[0]), parse("no.")], source="mine")
    for limit in (1, measuring.MOST + 1):
        with pytest.raises(UsageError, match=f"--limit from 2 to 1000 sentences; got {limit}"):
            sensitivity(subject, limit=limit)


def test_a_model_that_cannot_be_run_or_gives_no_numbers_is_one_clear_line(encoder, monkeypatch):
    from orderproof.subjects.driven import PretrainedDriver

    def gives(value):
        def hidden(driver, tokens):
            if isinstance(value, Exception):
                raise value
            return value

        monkeypatch.setattr(PretrainedDriver, "hidden", hidden)

    subject = load(str(encoder))
    for value, said in (
        (Unsupported("it has none"), "bert: it has none"),
        (ValueError("what\nelse"), "bert: cannot be run: ValueError: what"),
        ((torch.full((2, 3, 4), torch.nan),), "not finite"),
    ):
        gives(value)
        with pytest.raises(SubjectError, match=said):
            sensitivity(subject)


def test_a_model_that_gives_no_states_is_unsupported(encoder):
    driver = load(str(encoder)).driver()
    with pytest.raises(Unsupported, match="does not give out the states of its layers"):
        super(type(driver), driver).hidden(torch.zeros(1, 2))


def test_the_last_of_the_states_is_the_output_once(encoder, monkeypatch):
    driver = load(str(encoder)).driver()
    tokens = driver.draw(1, 5, 0)
    with torch.no_grad():
        states, output = driver.hidden(tokens), driver.call(tokens).output
        assert len(states) == 3
        assert torch.equal(states[-1], output)
        made = driver._outputs(tokens, {"output_hidden_states": True})
        made.last_hidden_state = 2 * made.last_hidden_state  # as a norm behind the last layer would
        monkeypatch.setattr(driver, "_outputs", lambda *given: made)
        states = driver.hidden(tokens)
    assert len(states) == 4
    assert torch.equal(states[-1], 2 * output)


def test_without_positions_says_why_it_cannot_be_had(encoder, monkeypatch):
    from orderproof.auditing import unordered

    def reason():
        return sensitivity(load(str(encoder)), limit=3).without.reason

    monkeypatch.setattr(unordered, "without_order", lambda exam, output, place: None)
    assert reason() == "not every entry of its map is a constant that can be made uniform"
    monkeypatch.setattr(unordered, "run", lambda *arguments: {}["output"])
    monkeypatch.setattr(unordered, "without_order", lambda exam, output, place: exam.captured)
    assert reason() == "the graph could not be run: KeyError: 'output'"


def test_a_tokenizer_that_does_not_tell_words_is_refused(encoder):
    subject = load(str(encoder))
    subject.words.tokenizer = object()
    with pytest.raises(UsageError, match="does not tell which token belongs to which word"):
        sensitivity(subject)
