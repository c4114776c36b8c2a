"""A study's YAML and its changes: every run it means, and one clear line for what it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.errors import UsageError
from orderproof.lab.study import StudyConfig, built_in, changed, load, parse, single
from tests.lab.running import TINY, tiny


def test_a_study_is_every_combination_with_every_seed() -> None:
    runs = tiny().runs()
    assert [(run.encoding, run.seed) for run in runs] == [("none", 0), ("none", 1), ("rotary", 0), ("rotary", 1)]
    assert len({run.id for run in runs}) == 4
    assert {run.width for run in runs} == {16}


def test_values_that_come_twice_are_one_run() -> None:
    assert len(changed(tiny(), ["encoding=alibi,alibi"]).runs()) == 2


def test_a_study_of_two_questions_is_refused_before_anything_is_trained() -> None:
    with pytest.raises(UsageError, match="expected one question, got even_pairs, parity; make a study of each"):
        changed(load("who_did_what"), ["question=parity,even_pairs", "causal=true", "layers=1"]).runs()


@pytest.mark.parametrize("name", built_in())
def test_every_study_of_the_package_can_be_read_and_says_what_it_asks(name: str) -> None:
    study = load(name)
    assert study.name == name
    assert study.about.endswith("?")
    assert len(study.runs()) > 1


def test_one_value_replaces_the_grids_and_several_make_one() -> None:
    assert {run.encoding for run in changed(tiny(), ["encoding=alibi"]).runs()} == {"alibi"}
    study = changed(tiny(), ["encoding=alibi,t5", "layers=1,2,3", "seeds=1", "learning_rate=1e-2"])
    assert [(run.encoding, run.layers) for run in study.runs()] == [
        ("alibi", 1), ("alibi", 2), ("alibi", 3), ("t5", 1), ("t5", 2), ("t5", 3)
    ]  # fmt: skip
    assert {run.learning_rate for run in study.runs()} == {0.01}
    assert {run.seed for run in study.runs()} == {0}


def test_a_setting_of_the_question_is_changed_with_a_dot() -> None:
    assert {run.question.nouns for run in changed(tiny(), ["question.nouns=5"]).runs()} == {5}  # type: ignore[attr-defined]
    several = changed(tiny(), ["question.nouns=5,6", "encoding=none", "seeds=1"]).runs()
    assert [run.question.nouns for run in several] == [5, 6]  # type: ignore[attr-defined]


def test_a_setting_is_not_lost_when_the_question_is_named_after_it() -> None:
    study = parse("name: a\nbase: {question.nouns: 5, question: who_did_what}\nseeds: 1", title="a")
    assert [run.question.nouns for run in study.runs()] == [5]  # type: ignore[attr-defined]
    again = changed(study, ["question=who_did_what"])
    assert [run.question.nouns for run in again.runs()] == [5]  # type: ignore[attr-defined]


def test_lengths_are_one_value() -> None:
    study = changed(tiny(), ["question=copy", "train_lengths=1,5", "test_lengths=5,9,20"])
    assert {(run.train_lengths, run.test_lengths) for run in study.runs()} == {((1, 5), (5, 9, 20))}


def test_a_single_run_is_the_one_that_a_study_has() -> None:
    study = parse("name: s\nbase: {question: {name: copy, letters: 3}, steps: 7}\nseeds: 2", title="s")
    found = single("copy", ["seed=1", "question.letters=3", "steps=9", "steps=7"])
    assert found.id == study.runs()[1].id
    assert (found.seed, found.steps) == (1, 7)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["question=parity"], "expected one question, got 'copy' and 'parity'; give settings of the run"),
        (["steps"], "expected key=value, such as steps=100"),
        (["seeds=2"], "a run of 'copy': no setting is named 'seeds'; did you mean 'seed'?"),
        (["question.lettres=2"], "a run of 'copy': question.lettres: Extra inputs are not permitted"),
    ],
)
def test_a_single_run_that_does_not_fit_is_one_line(settings: list[str], why: str) -> None:
    with pytest.raises(UsageError) as told:
        single("copy", settings)
    assert str(told.value).startswith(why)
    assert "\n" not in str(told.value)


def test_a_study_is_not_changed_in_place() -> None:
    before = tiny()
    changed(before, ["steps=7", "encoding=alibi"])
    assert before == tiny()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("steps", "expected key=value, such as steps=100 or encoding=rotary,alibi, got 'steps'"),
        ("=3", "expected key=value"),
        ("step=3", "no setting is named 'step'; did you mean 'steps'?"),
        ("zzz=3", "no setting is named 'zzz'; known: question, encoding, "),
        ("width.x=3", "no setting is named 'width.x'"),
        ("seed=3", "'seed' is set by the study; give seeds, how many there are"),
        ("seed=3,4", "'seed' is set by the study"),
        ("seeds=0", "seeds: Input should be greater than or equal to 1, got 0"),
        ("seeds=few", "seeds: Input should be a valid integer"),
        ("steps=abc", "steps: Input should be a valid integer.*, got 'abc'"),
        ("steps=", "steps: Input should be a valid integer, got None"),
        ("steps=[", "steps: expected a number, a word, or several with commas, got '\\['"),
        ("encoding=[]", "expected one value or more for 'encoding' in the grid, got none"),
        ("encoding=rotary,rotery", "rotery"),
        ("question.nouns=x", "question.nouns: Input should be a valid integer"),
        ("question.verb=3", "question.verb: Extra inputs are not permitted, got 3"),
        ("question=5", "question: expected the name of a question"),
        ("name=a/b", "name: String should match pattern"),
        ("base={}", "no setting is named 'base'"),
    ],
)
def test_a_change_that_does_not_fit_is_one_line(change: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        changed(tiny(), [change])
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
            "study 'mine' is not YAML: .*'base' stands there twice",
        ),
        (
            "name: a\nbase: !!python/object/apply:os.getcwd []",
            "study 'mine' is not YAML: could not determine a constructor",
        ),
    ],
)
def test_a_file_that_is_no_study_is_one_line(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as error:
        parse(text, title="mine")
    assert "\n" not in str(error.value)


def test_a_study_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY)
    assert load(str(file)) == tiny()
    assert isinstance(load(str(file)), StudyConfig)


def test_a_study_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="expected a YAML file or a study, one of .*; got 'who_did_that'; did you mean 'who_did_what'?"
    ):
        load("who_did_that")
    with pytest.raises(
        UsageError, match="cannot read the study '.*none.yaml': No such file or directory; give a YAML file"
    ):
        load(str(tmp_path / "none.yaml"))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot read the study '.*bytes.yaml': it is not UTF-8 text"):
        load(str(tmp_path / "bytes.yaml"))
