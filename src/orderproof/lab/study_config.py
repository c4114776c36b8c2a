"""A study: the settings that all its runs share, those that the grid varies, and the number of seeds.

    name: who_did_what
    about: Which encodings let a transformer tell who did it?
    base: {question: who_did_what, width: 32, steps: 400}
    grid: {encoding: [none, rotary], causal: [false, true]}
    also: [{encoding: rotary, stretch: yarn}, {encoding: {name: fire, threshold: 64}}]
    seeds: 5
    learning_rates: [0.001, 0.003]

Its runs are every combination in the grid, and those of `also`, each with the seeds 0, 1, 2, ... A study is a YAML
file. On the command line, `key=value` overrides a setting, `key=a,b` adds a dimension to the grid, and
`question.key=value` and `encoding.key=value` override a setting of the question and an argument of the encoding.
"""

from __future__ import annotations

from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orderproof.errors import UsageError
from orderproof.lab.setting_keys import NAME_KEY, QUESTION_KEY, SEED_KEY
from orderproof.registry import did_you_mean


class StudySettings(BaseModel):
    """The settings of a study as its file states them. The runs, and the models that they name, are not checked."""

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
    learning_rates: list[float] = Field(default_factory=list)
    """The learning rates of the sweep before the study (see `lab.sweep`); empty for no sweep."""
    sweep_seeds: int = Field(default=2, ge=1)

    def combinations(self) -> list[dict[str, Any]]:
        """The settings of each run, ordered by combination and then by seed. Raises `UsageError`."""
        if empty := [key for key, values in self.grid.items() if not values]:
            raise UsageError(f"study {self.name!r}: expected one value or more for {empty[0]!r} in the grid, got none")
        if any(SEED_KEY in settings for settings in (self.base, self.grid, *self.also)):
            raise UsageError(f"study {self.name!r}: expected no {SEED_KEY!r}; set seeds, the number of seeds")
        combinations = [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]
        return [
            {**self.base, **settings, SEED_KEY: seed}
            for settings in (*combinations, *self.also)
            for seed in range(self.seeds)
        ]

    def question_names(self) -> list[str]:
        """The names of the questions of the runs, in order, each once."""
        asked = [settings.get(QUESTION_KEY) for settings in self.combinations()]
        return list(dict.fromkeys(str(each.get(NAME_KEY) if isinstance(each, dict) else each) for each in asked))


Settings = TypeVar("Settings", bound=StudySettings)


def read_study(name: str) -> StudySettings:
    """The settings of a study, by its name or from a YAML file. Raises `UsageError`."""
    return parse_settings(study_text(name), title=name, kind=StudySettings)


def study_text(name: str) -> str:
    """The text of a built-in study or of a YAML file. Raises `UsageError`."""
    known = built_in_studies()
    path = Path(name).expanduser()
    if name in known:
        return resources.files("orderproof.lab").joinpath("studies", f"{name}.yaml").read_text(encoding="utf-8")
    if path.suffix in (".yaml", ".yml") or path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"cannot read the study {name!r}: {cause}; pass a YAML file") from error
    hint = did_you_mean(name, known)
    raise UsageError(f"expected a YAML file or a study, one of {', '.join(known)}; got {name!r}{hint}")


def parse_settings(text: str, *, title: str, kind: type[Settings]) -> Settings:
    """The settings of a study from the text of a YAML file. Raises `UsageError`."""
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader with one more check
    except yaml.YAMLError as error:
        raise UsageError(f"study {title!r} is not YAML: {' '.join(str(error).split())}") from error
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"study {title!r}: {validation_message(error)}") from error


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


def validation_message(error: ValidationError) -> str:
    """The first problem of a validation error in one line: the field, the problem, and the value."""
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "tuple_type":
        message = f"expected several values, such as {field}=2,512; got {problem['input']!r}"
    if not message.startswith(("expected", f"{field}:")) and not isinstance(problem["input"], dict):
        message = f"{message}, got {problem['input']!r}"
    return f"{field}: {message}" if field and not message.startswith(f"{field}:") else message
