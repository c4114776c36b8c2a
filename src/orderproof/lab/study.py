"""A study: the settings that all its runs share, those that the grid varies, and the number of seeds.

    name: who_did_what
    about: Which encodings let a transformer tell who did it?
    base: {question: who_did_what, width: 32, steps: 400}
    grid: {encoding: [none, rotary], causal: [false, true]}
    also: [{encoding: rotary, stretch: yarn}]
    seeds: 5

Its runs are every combination in the grid, and those of `also`, each with the seeds 0, 1, 2, ... A study is a YAML
file. On the command line, `key=value` overrides a setting, `key=a,b` adds a dimension to the grid, and
`question.key=value` overrides a setting of the question.
"""

from __future__ import annotations

from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orderproof.errors import UsageError
from orderproof.lab.run_config import NAME_KEY, QUESTION_KEY, SEED_KEY, RunConfig
from orderproof.registry import did_you_mean

STUDY_KEYS = ("name", "about", "seeds")


class StudyConfig(BaseModel):
    """The runs of a study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    about: str = ""
    """The purpose of the study, in one sentence."""
    base: dict[str, Any]
    """The settings that all runs share."""
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    """The values of each setting that varies."""
    also: list[dict[str, Any]] = Field(default_factory=list)
    """Single combinations in addition to the grid."""
    seeds: int = Field(default=5, ge=1)

    def runs(self) -> list[RunConfig]:
        """Every run, ordered by combination and then by seed. Raises `UsageError`."""
        if empty := [key for key, values in self.grid.items() if not values]:
            raise UsageError(f"study {self.name!r}: expected one value or more for {empty[0]!r} in the grid, got none")
        if any(SEED_KEY in settings for settings in (self.base, self.grid, *self.also)):
            raise UsageError(f"study {self.name!r}: expected no {SEED_KEY!r}; set seeds, the number of seeds")
        combinations = [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]
        runs = [
            _build_run(f"study {self.name!r}", {**self.base, **settings, SEED_KEY: seed})
            for settings in (*combinations, *self.also)
            for seed in range(self.seeds)
        ]
        if len(names := sorted({run.question.name for run in runs})) > 1:
            raise UsageError(
                f"study {self.name!r}: expected one question, got {', '.join(names)}; make a study for each"
            )
        return list({run.id: run for run in runs}.values())


def parse_run(question: str, settings: list[str]) -> RunConfig:
    """A single run: a question, and ``key=value`` settings as in a study, with ``seed``. Raises `UsageError`."""
    overrides = dict(map(_parse_override, settings))
    if QUESTION_KEY in overrides:
        second = overrides[QUESTION_KEY]
        raise UsageError(f"expected one question, got {question!r} and {second!r}; pass settings of the run")
    return _build_run(f"a run of {question!r}", {QUESTION_KEY: question, **overrides})


def load_study(name: str) -> StudyConfig:
    """A built-in study by its name, or a study from a YAML file. Raises `UsageError`."""
    known = built_in_studies()
    path = Path(name).expanduser()
    if name in known:
        text = resources.files("orderproof.lab").joinpath("studies", f"{name}.yaml").read_text(encoding="utf-8")
    elif path.suffix in (".yaml", ".yml") or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"cannot read the study {name!r}: {cause}; pass a YAML file") from error
    else:
        hint = did_you_mean(name, known)
        raise UsageError(f"expected a YAML file or a study, one of {', '.join(known)}; got {name!r}{hint}")
    return parse_study(text, title=name)


def parse_study(text: str, *, title: str) -> StudyConfig:
    """A study from the text of a YAML file. Raises `UsageError`."""
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader with one more check
    except yaml.YAMLError as error:
        raise UsageError(f"study {title!r} is not YAML: {' '.join(str(error).split())}") from error
    try:
        study = StudyConfig.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"study {title!r}: {validation_message(error)}") from error
    study.runs()
    return study


class _UniqueKeyLoader(yaml.SafeLoader):  # type: ignore[misc]
    """`yaml.SafeLoader` that rejects duplicate keys instead of using the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - signature of the base class
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def built_in_studies() -> list[str]:
    """The names of the studies in the package."""
    folder = resources.files("orderproof.lab").joinpath("studies")
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def with_overrides(study: StudyConfig, changes: list[str]) -> StudyConfig:
    """The study with each ``key=value`` override applied. Raises `UsageError`."""
    base, grid, also, top_level = dict(study.base), dict(study.grid), list(study.also), {}
    for change in changes:
        key, value = _parse_override(change)
        if key in STUDY_KEYS:
            top_level[key] = value
            continue
        grid.pop(key, None)
        also = [settings for settings in also if key not in settings]  # the override replaces these combinations
        base.pop(key, None)
        if not isinstance(value, list) or key.endswith("_lengths"):
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


def validation_message(error: ValidationError) -> str:
    """The first problem of a validation error in one line: the field, the problem, and the value."""
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not message.startswith(("expected", f"{field}:")) and not isinstance(problem["input"], dict):
        message = f"{message}, got {problem['input']!r}"
    return f"{field}: {message}" if field and not message.startswith(f"{field}:") else message


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
    _check_keys(context, settings)
    for key in sorted(settings, key=lambda key: "." in key):  # the question before its settings
        _set_nested(nested, key, settings[key])
    try:
        return RunConfig.model_validate(nested)
    except ValidationError as error:
        raise UsageError(f"{context}: {validation_message(error)}") from error


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
