"""The configuration of a run: invalid settings are refused, and equal configurations have one id."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from orderproof.lab.run_config import RunConfig, config_digest
from orderproof.lab.study_config import validation_message
from tests.lab.small_study import tiny_run

PLAIN = {"question": {"name": "who_did_what", "nouns": 4}, "width": 32, "steps": 40, "encoding": "alibi"}


def test_the_id_of_a_run_is_stable() -> None:
    # These ids identify stored results: a change here invalidates every existing store, and must be intended.
    assert RunConfig.model_validate(PLAIN).id == "8500b7f1ce5b01d3"
    assert RunConfig.model_validate(PLAIN).cell_id == "ba60694c1ad27165"
    assert config_digest({"b": [1, 0.1], "a": None}) == "68020a8168912fc6"


def test_the_order_of_keys_and_the_format_of_numbers_do_not_change_the_id() -> None:
    run = RunConfig.model_validate(PLAIN)
    reordered = {key: PLAIN[key] for key in reversed(PLAIN)}
    reordered["question"] = {"nouns": 4, "name": "who_did_what"}
    assert RunConfig.model_validate(reordered).id == run.id
    assert RunConfig.model_validate({**PLAIN, "steps": "40", "learning_rate": "3e-3"}).id == run.id
    assert RunConfig.model_validate({**PLAIN, "question": run.question, "causal": True}).id == run.id


def test_a_default_has_the_same_id_as_its_explicit_value() -> None:
    assert RunConfig.model_validate({**PLAIN, "batch": 64, "hidden": None}).id == RunConfig.model_validate(PLAIN).id


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"steps": 41},
        {"encoding": "t5"},
        {"question": "who_did_what"},
        {"question": "parity"},
        {"keep_every": 3},
    ],
)
def test_every_change_is_another_run(change: dict[str, Any]) -> None:
    assert RunConfig.model_validate({**PLAIN, **change}).id != RunConfig.model_validate(PLAIN).id


def test_the_seed_alone_does_not_change_the_cell() -> None:
    assert tiny_run(seed=1).cell_id == tiny_run(seed=2).cell_id
    assert tiny_run(seed=1, steps=9).cell_id != tiny_run(seed=1).cell_id


def test_a_configuration_comes_back_from_its_json() -> None:
    run = tiny_run(question={"name": "copy", "letters": 3}, train_lengths=(1, 4), test_lengths=(5, 8), clip=None)
    again = RunConfig.model_validate(json.loads(json.dumps(run.to_dict())))
    assert again == run
    assert again.id == run.id


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stepz": 4}, "stepz: Extra inputs are not permitted, got 4"),
        ({"steps": 0}, "steps: Input should be greater than or equal to 1, got 0"),
        ({"steps": "many"}, "steps: Input should be a valid integer, .*, got 'many'"),
        ({"steps": True}, "steps: expected no boolean, got True"),
        ({"steps": [1, 2]}, r"steps: Input should be a valid integer, got \[1, 2\]"),
        ({"learning_rate": float("inf")}, "learning_rate: Input should be a finite number, got inf"),
        ({"learning_rate": float("nan")}, "learning_rate: Input should be .*, got nan"),
        ({"schedule": "linear"}, "schedule: Input should be 'constant' or 'cosine', got 'linear'"),
        ({"heads": 5}, "heads: expected a number that divides width=32, got 5"),
        ({"encoding": "rotery"}, "rotary"),
        ({"encoding": 3}, "encoding: Input should be a valid string, got 3"),
        ({"question": "who"}, "question: expected a question, one of .*; got 'who'"),
        ({"question": {"nouns": 4}}, "question: expected the name of a question, or a mapping with its name"),
        ({"question": {"name": "parity", "nouns": 4}}, "nouns: Extra inputs are not permitted, got 4"),
        (
            {"question": {"name": "who_did_what", "nouns": 1}},
            "nouns: Input should be greater than or equal to 2, got 1",
        ),
        ({"question": "copy", "causal": False}, "causal: copy needs a decoder; set causal=true"),
        ({"train_lengths": (5, 3)}, "train_lengths: expected two numbers, 1 or more and in order, got 5 and 3"),
        ({"train_lengths": (0, 3)}, "train_lengths: expected two numbers"),
        ({"test_lengths": ()}, "test_lengths: expected one length or more, each 1 or more, got none"),
        ({"question": "who_did_what", "test_lengths": (6, 20)}, "who_did_what: expected length 6, .*; got 20"),
        ({"encoding": False}, "encoding: expected no boolean, got False; quote a word that YAML reads as one"),
        ({"test_lengths": (4, 0)}, "test_lengths: expected one length or more, each 1 or more, got 0"),
    ],
)
def test_an_invalid_setting_is_one_line(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as error:
        RunConfig.model_validate({**PLAIN, **change})
    line = validation_message(error.value)
    assert "\n" not in line
    assert re.search(why, line), line
