"""A study's YAML and its changes: every run it means, and one clear line for what it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.errors import UsageError
from orderproof.lab.model import build_model
from orderproof.lab.study import StudyConfig, load_study, parse_run, parse_study, with_overrides
from orderproof.lab.study_config import built_in_studies, read_study
from tests.lab.small_study import TINY, tiny_study


def test_a_study_is_every_combination_with_every_seed() -> None:
    runs = tiny_study().runs()
    assert [(run.encoding, run.seed) for run in runs] == [("none", 0), ("none", 1), ("rotary", 0), ("rotary", 1)]
    assert len({run.id for run in runs}) == 4
    assert {run.width for run in runs} == {16}


def test_repeated_values_are_one_run() -> None:
    assert len(with_overrides(tiny_study(), ["encoding=alibi,alibi"]).runs()) == 2


def test_a_study_of_two_questions_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one question, got even_pairs, parity; make a study for each"):
        with_overrides(load_study("who_did_what"), ["question=parity,even_pairs", "causal=true", "layers=1"]).runs()


@pytest.mark.parametrize("name", built_in_studies())
def test_every_built_in_study_is_valid_and_has_a_purpose(name: str) -> None:
    study = load_study(name)
    assert study.name == name
    assert study.about.endswith("?")
    assert len(study.runs()) > 1


@pytest.mark.parametrize("name", built_in_studies())
def test_the_settings_of_a_built_in_study_are_those_of_its_runs(name: str) -> None:
    settings, runs = read_study(name), load_study(name).runs()
    assert len(settings.combinations()) == len(runs)
    assert settings.question_names() == list(dict.fromkeys(run.question.name for run in runs))


def test_one_value_replaces_those_of_the_grid_and_several_add_a_dimension() -> None:
    assert {run.encoding for run in with_overrides(tiny_study(), ["encoding=alibi"]).runs()} == {"alibi"}
    study = with_overrides(tiny_study(), ["encoding=alibi,t5", "layers=1,2,3", "seeds=1", "learning_rate=1e-2"])
    assert [(run.encoding, run.layers) for run in study.runs()] == [
        ("alibi", 1), ("alibi", 2), ("alibi", 3), ("t5", 1), ("t5", 2), ("t5", 3)
    ]  # fmt: skip
    assert {run.learning_rate for run in study.runs()} == {0.01}
    assert {run.seed for run in study.runs()} == {0}


def test_a_dotted_key_overrides_a_setting_of_the_question() -> None:
    assert {run.question.nouns for run in with_overrides(tiny_study(), ["question.nouns=5"]).runs()} == {5}  # type: ignore[attr-defined]
    several = with_overrides(tiny_study(), ["question.nouns=5,6", "encoding=none", "seeds=1"]).runs()
    assert [run.question.nouns for run in several] == [5, 6]  # type: ignore[attr-defined]


def test_arguments_of_an_encoding_are_set_by_a_dotted_key_or_a_mapping() -> None:
    dotted = with_overrides(tiny_study(), ["encoding=fire", "encoding.threshold=16", "encoding.learned_threshold=true"])
    text = "name: a\nbase: {question: who_did_what}\nseeds: 1\ngrid: {encoding: [none, {name: fire, threshold: 16}]}"
    plain, mapped = parse_study(text, title="a").runs()
    assert dotted.runs()[0].encoding_arguments == {"threshold": 16, "learned_threshold": True}
    assert (plain.encoding_arguments, mapped.encoding, mapped.encoding_arguments) == ({}, "fire", {"threshold": 16})
    assert build_model(mapped).encoding.threshold == 16  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="encoding 'fire' has no argument 'treshold'; did you mean 'threshold'"):
        with_overrides(tiny_study(), ["encoding=fire", "encoding.treshold=16"])
    with pytest.raises(UsageError, match="FIRE: threshold must be"):
        with_overrides(tiny_study(), ["encoding=fire", "encoding.threshold=0"])


def test_the_sweep_has_every_rate_for_every_cell_on_other_seeds_and_trained_lengths_only() -> None:
    study = parse_study(
        "name: a\nbase: {question: copy}\ngrid: {encoding: [none, rotary]}\nalso: [{encoding: rotary, stretch: yarn}]\n"
        "learning_rates: [0.001, 0.01]\nsweep_seeds: 2\nseeds: 3",
        title="a",
    )
    found = study.sweep_runs()
    assert [(run.encoding, run.learning_rate, run.seed) for run in found] == [
        (encoding, rate, seed) for encoding in ("none", "rotary") for rate in (0.001, 0.01) for seed in (1000, 1001)
    ]  # the stretch acts after training: its cell shares the sweep of the plain one
    assert {run.effective_test_lengths for run in found} == {(10,)}
    assert {run.seed for run in study.runs()} == {0, 1, 2}
    rates = {found[0].sweep_id: 0.5, found[4].sweep_id: 0.25}
    assert [run.learning_rate for run in study.runs(rates)] == [0.5] * 3 + [0.25] * 6


def test_a_setting_is_kept_when_the_question_follows_it() -> None:
    study = parse_study("name: a\nbase: {question.nouns: 5, question: who_did_what}\nseeds: 1", title="a")
    assert [run.question.nouns for run in study.runs()] == [5]  # type: ignore[attr-defined]
    again = with_overrides(study, ["question=who_did_what"])
    assert [run.question.nouns for run in again.runs()] == [5]  # type: ignore[attr-defined]


def test_lengths_are_one_value() -> None:
    study = with_overrides(tiny_study(), ["question=copy", "train_lengths=1,5", "test_lengths=5,9,20"])
    assert {(run.train_lengths, run.test_lengths) for run in study.runs()} == {((1, 5), (5, 9, 20))}


def test_a_single_run_equals_that_of_a_study() -> None:
    study = parse_study("name: s\nbase: {question: {name: copy, letters: 3}, steps: 7}\nseeds: 2", title="s")
    found = parse_run("copy", ["seed=1", "question.letters=3", "steps=9", "steps=7"])
    assert found.id == study.runs()[1].id
    assert (found.seed, found.steps) == (1, 7)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["question=parity"], "expected one question, got 'copy' and 'parity'; pass settings of the run"),
        (["steps"], "expected key=value, such as steps=100"),
        (["seeds=2"], "a run of 'copy': no setting is named 'seeds'; did you mean 'seed'?"),
        (["question.lettres=2"], "a run of 'copy': question.lettres: Extra inputs are not permitted"),
    ],
)
def test_an_invalid_single_run_is_one_line(settings: list[str], why: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_run("copy", settings)
    assert str(error.value).startswith(why)
    assert "\n" not in str(error.value)


def test_a_study_is_not_changed_in_place() -> None:
    before = tiny_study()
    with_overrides(before, ["steps=7", "encoding=alibi"])
    assert before == tiny_study()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("steps", "expected key=value, such as steps=100 or encoding=rotary,alibi, got 'steps'"),
        ("=3", "expected key=value"),
        ("step=3", "no setting is named 'step'; did you mean 'steps'?"),
        ("zzz=3", "no setting is named 'zzz'; the settings are question, encoding, "),
        ("width.x=3", "no setting is named 'width.x'"),
        ("seed=3", "expected no 'seed'; set seeds, the number of seeds"),
        ("seed=3,4", "expected no 'seed'"),
        ("seeds=0", "seeds: Input should be greater than or equal to 1, got 0"),
        ("seeds=few", "seeds: Input should be a valid integer"),
        ("steps=abc", "steps: Input should be a valid integer.*, got 'abc'"),
        ("steps=", "steps: Input should be a valid integer, got None"),
        ("steps=[", "steps: expected a number, a word, or several separated by commas, got '\\['"),
        ("encoding=[]", "expected one value or more for 'encoding' in the grid, got none"),
        ("encoding=rotary,rotery", "rotery"),
        ("question.nouns=x", "question.nouns: Input should be a valid integer"),
        ("question.verb=3", "question.verb: Extra inputs are not permitted, got 3"),
        ("question=5", "question: expected the name of a question"),
        ("name=a/b", "name: String should match pattern"),
        ("base={}", "no setting is named 'base'"),
    ],
)
def test_an_invalid_override_is_one_line(change: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        with_overrides(tiny_study(), [change])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Input should be a valid dictionary"),
        ("a: [", "study 'mine' is not YAML: .* line 1"),
        ("- 1\n- 2", "Input should be a valid dictionary"),
        ("base: {question: parity}", "name: Field required"),
        ("name: a", "base: Field required"),
        ("name: a\nbase: {}", "question: Field required"),
        ("name: a\nbase: {question: parity}\ngird: {}", "gird: Extra inputs are not permitted"),
        ("name: a\nbase: {question: parity}\ngrid: {layers: 2}", "grid.layers: Input should be a valid list, got 2"),
        ("name: a\nbase: {question: parity}\ngrid: {layers: []}", "expected one value or more for 'layers'"),
        ("name: a\nbase: {question: parity, layers: two}", "layers: Input should be a valid integer"),
        ("name: a\nbase: {question: 5, question.x: 3}", "question"),
        ("name: a\nbase: {1: 2}", "base"),
        (
            "name: a\nbase: {question: parity}\nbase: {question: copy}",
            "study 'mine' is not YAML: .*duplicate key 'base'",
        ),
        (
            "name: a\nbase: !!python/object/apply:os.getcwd []",
            "study 'mine' is not YAML: could not determine a constructor",
        ),
    ],
)
def test_a_file_that_is_no_study_is_one_line(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        parse_study(text, title="mine")
    assert "\n" not in str(error.value)


def test_a_study_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY)
    assert load_study(str(file)) == tiny_study()
    assert isinstance(load_study(str(file)), StudyConfig)


def test_a_missing_study_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="expected a YAML file or a study, one of .*; got 'who_did_that'; did you mean 'who_did_what'?"
    ):
        load_study("who_did_that")
    with pytest.raises(
        UsageError, match="cannot read the study '.*none.yaml': No such file or directory; pass a YAML file"
    ):
        load_study(str(tmp_path / "none.yaml"))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot read the study '.*bytes.yaml': it is not UTF-8 text"):
        load_study(str(tmp_path / "bytes.yaml"))


def test_one_test_length_is_a_list_and_one_training_length_is_refused() -> None:
    study = with_overrides(load_study("copy"), ["test_lengths=20", "learning_rates=0.01"])
    assert {run.effective_test_lengths for run in study.runs()} == {(20,)}
    assert list(study.learning_rates) == [0.01]
    with pytest.raises(
        UsageError, match="train_lengths: expected several values, such as train_lengths=2,512; got 512"
    ):
        with_overrides(load_study("copy"), ["train_lengths=512"])
