"""The runs of a study, and the overrides of its settings on the command line.

`key=value` overrides a setting, `key=a,b` adds a dimension to the grid, and `question.key=value` and
`encoding.key=value` override a setting of the question and an argument of the encoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from orderproof.errors import UsageError
from orderproof.lab.run_config import RunConfig
from orderproof.lab.setting_keys import NAME_KEY, QUESTION_KEY
from orderproof.lab.study_config import StudySettings, parse_settings, study_text, validation_message
from orderproof.lab.sweep import sweep_runs
from orderproof.registry import did_you_mean

STUDY_KEYS = ("name", "about", "seeds", "learning_rates", "sweep_seeds")
LIST_KEYS = ("learning_rates", "test_lengths")  # whose value is a list, also of one
RANGE_KEY = "train_lengths"
ENCODING_KEY, ARGUMENTS_KEY = "encoding", "encoding_arguments"


class StudyConfig(StudySettings):
    """The runs of a study."""

    def runs(self, learning_rates: Mapping[str, float] | None = None) -> list[RunConfig]:
        """Every run, ordered by combination and then by seed. Raises `UsageError`.

        ``learning_rates`` replaces the learning rate of the runs with a `RunConfig.sweep_id` among its keys.
        """
        runs = [_build_run(f"study {self.name!r}", settings) for settings in self.combinations()]
        rates = learning_rates or {}
        runs = [
            RunConfig.model_validate({**run.to_dict(), "learning_rate": rates.get(run.sweep_id, run.learning_rate)})
            for run in runs
        ]
        if len(names := sorted({run.question.name for run in runs})) > 1:
            raise UsageError(
                f"study {self.name!r}: expected one question, got {', '.join(names)}; make a study for each"
            )
        return list({run.id: run for run in runs}.values())

    def sweep_runs(self) -> list[RunConfig]:
        """The runs of the sweep of learning rates; none without `learning_rates`."""
        return sweep_runs(self.runs(), self.learning_rates, seeds=self.sweep_seeds)


def parse_run(question: str, settings: list[str]) -> RunConfig:
    """A single run: a question, and ``key=value`` settings as in a study, with ``seed``. Raises `UsageError`."""
    overrides = dict(map(_parse_override, settings))
    if QUESTION_KEY in overrides:
        second = overrides[QUESTION_KEY]
        raise UsageError(f"expected one question, got {question!r} and {second!r}; pass settings of the run")
    return _build_run(f"a run of {question!r}", {QUESTION_KEY: question, **overrides})


def load_study(name: str) -> StudyConfig:
    """A built-in study by its name, or a study from a YAML file. Raises `UsageError`."""
    return parse_study(study_text(name), title=name)


def parse_study(text: str, *, title: str) -> StudyConfig:
    """A study from the text of a YAML file. Raises `UsageError`."""
    study = parse_settings(text, title=title, kind=StudyConfig)
    study.runs()
    return study


def with_overrides(study: StudyConfig, changes: list[str]) -> StudyConfig:
    """The study with each ``key=value`` override applied. Raises `UsageError`."""
    base, grid, also, top_level = dict(study.base), dict(study.grid), list(study.also), {}
    for change in changes:
        key, value = _parse_override(change)
        if key in LIST_KEYS and not isinstance(value, list):
            value = [value]
        if key in STUDY_KEYS:
            top_level[key] = value
            continue
        grid.pop(key, None)
        also = [settings for settings in also if key not in settings]  # the override replaces these combinations
        base.pop(key, None)
        if not isinstance(value, list) or key in (*LIST_KEYS, RANGE_KEY):
            base[key] = value
        else:
            grid[key] = value
    try:
        changed = StudyConfig.model_validate(
            {**study.model_dump(), **top_level, "base": base, "grid": grid, "also": also}
        )
    except ValidationError as error:
        raise UsageError(f"study {study.name!r}: {validation_message(error)}") from error
    changed.runs()
    return changed


def _parse_override(change: str) -> tuple[str, Any]:
    """The key and the value of ``key=value``; a value with commas is a list."""
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise UsageError(f"expected key=value, such as steps=100 or encoding=rotary,alibi, got {change!r}")
    try:
        return key, yaml.safe_load(f"[{text}]" if "," in text and text[:1] not in "[{" else text)
    except yaml.YAMLError as error:
        raise UsageError(f"{key}: expected a number, a word, or several separated by commas, got {text!r}") from error


def _build_run(context: str, settings: dict[str, Any]) -> RunConfig:
    """A run from all of its settings; ``context`` begins the error messages."""
    nested: dict[str, Any] = {}
    settings = _split_encoding(settings)
    _check_keys(context, settings)
    for key in sorted(settings, key=lambda key: "." in key):  # the question before its settings
        _set_nested(nested, key, settings[key])
    try:
        return RunConfig.model_validate(nested)
    except ValidationError as error:
        raise UsageError(f"{context}: {validation_message(error)}") from error


def _split_encoding(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the arguments of the encoding apart from its name."""
    split, arguments = {}, dict(settings.get(ARGUMENTS_KEY) or {})
    for key, value in settings.items():
        if key == ENCODING_KEY and isinstance(value, dict):
            split[ENCODING_KEY] = value.get(NAME_KEY)
            arguments.update({name: each for name, each in value.items() if name != NAME_KEY})
        elif key.startswith(f"{ENCODING_KEY}."):
            arguments[key.partition(".")[2]] = value
        elif key != ARGUMENTS_KEY:
            split[key] = value
    return {**split, ARGUMENTS_KEY: arguments} if arguments else split


def _set_nested(settings: dict[str, Any], key: str, value: object) -> None:
    """Set a key, or for ``question.key`` a setting of the question."""
    _, dot, inner_key = key.partition(".")
    if not dot:
        settings[key] = value
        return
    question = settings.get(QUESTION_KEY)
    inner = {NAME_KEY: question} if isinstance(question, str) else dict(question) if isinstance(question, dict) else {}
    settings[QUESTION_KEY] = {**inner, inner_key: value}


def _check_keys(context: str, settings: dict[str, Any]) -> None:
    for key in settings:
        if key not in RunConfig.model_fields and not key.startswith(f"{QUESTION_KEY}."):
            hint = (
                did_you_mean(key, RunConfig.model_fields) or f"; the settings are {', '.join(RunConfig.model_fields)}"
            )
            raise UsageError(f"{context}: no setting is named {key!r}{hint}")
