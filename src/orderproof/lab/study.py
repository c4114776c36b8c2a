"""A study: what all its runs share, what the grid varies, and how many seeds.

    name: who_did_what
    about: Which encodings let a transformer tell who did it?
    base: {question: who_did_what, width: 32, steps: 400}
    grid: {encoding: [none, rotary], causal: [false, true]}
    also: [{encoding: rotary, stretch: yarn}]
    seeds: 5

Its runs are every combination in the grid, and those of `also`, each with the seeds 0, 1, 2, ... A study is read from
YAML, and changed by `key=value`, with several values `key=a,b` for a grid and `question.key=value` for a setting of the
question.
"""

from __future__ import annotations

import difflib
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orderproof.errors import UsageError
from orderproof.lab.configuration import NAME, RunConfig

OWN = ("name", "about", "seeds")
QUESTION, SEED = "question", "seed"


class StudyConfig(BaseModel):
    """Many runs, and what is asked of them together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    about: str = ""
    """What the study asks, in one sentence."""
    base: dict[str, Any]
    """What the runs share: keys of a run's configuration."""
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    """What is varied: for each key its values."""
    also: list[dict[str, Any]] = Field(default_factory=list)
    """Single combinations beside the grid."""
    seeds: int = Field(default=5, ge=1)

    def runs(self) -> list[RunConfig]:
        """Every run, all seeds of one combination after the other. Raises `UsageError`."""
        if empty := [key for key, values in self.grid.items() if not values]:
            raise UsageError(f"study {self.name!r}: expected one value or more for {empty[0]!r} in the grid, got none")
        if any(SEED in some for some in (self.base, self.grid, *self.also)):
            raise UsageError(f"study {self.name!r}: {SEED!r} is set by the study; give seeds, how many there are")
        made: list[RunConfig] = []
        combined = [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]
        for chosen in (*combined, *self.also):
            made.extend(self._run({**chosen, SEED: seed}) for seed in range(self.seeds))
        if len(asked := sorted({run.question.name for run in made})) > 1:
            raise UsageError(
                f"study {self.name!r}: expected one question, got {', '.join(asked)}; make a study of each"
            )
        return list({run.id: run for run in made}.values())

    def _run(self, chosen: dict[str, Any]) -> RunConfig:
        return _made(f"study {self.name!r}", {**self.base, **chosen})


def single(question: str, settings: list[str]) -> RunConfig:
    """One run without a study: a question, and ``key=value`` as in a study, the seed too. Raises `UsageError`."""
    given = dict(map(_parsed, settings))
    if QUESTION in given:
        raise UsageError(f"expected one question, got {question!r} and {given[QUESTION]!r}; give settings of the run")
    return _made(f"a run of {question!r}", {QUESTION: question, **given})


def load(name: str) -> StudyConfig:
    """A study that comes with the package, by its name, or from a YAML file. Raises `UsageError`."""
    known = built_in()
    path = Path(name).expanduser()
    if name in known:
        text = resources.files("orderproof.lab").joinpath("studies", f"{name}.yaml").read_text(encoding="utf-8")
    elif path.suffix in (".yaml", ".yml") or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"cannot read the study {name!r}: {why}; give a YAML file") from error
    else:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"expected a YAML file or a study, one of {', '.join(known)}; got {name!r}{hint}")
    return parse(text, title=name)


def parse(text: str, *, title: str) -> StudyConfig:
    """A study from the text of a YAML file. Raises `UsageError`."""
    try:
        data = yaml.load(text, Loader=_Strict)  # noqa: S506 - a SafeLoader, with one rule more
    except yaml.YAMLError as error:
        raise UsageError(f"study {title!r} is not YAML: {' '.join(str(error).split())}") from error
    try:
        study = StudyConfig.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"study {title!r}: {first_line(error)}") from error
    study.runs()
    return study


class _Strict(yaml.SafeLoader):  # type: ignore[misc]
    """Plain data, as `yaml.safe_load`; but a key that stands there twice is an error, where that takes the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as it is called
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands there twice", node.start_mark)
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def built_in() -> list[str]:
    """The names of the studies that come with the package."""
    folder = resources.files("orderproof.lab").joinpath("studies")
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def changed(study: StudyConfig, changes: list[str]) -> StudyConfig:
    """The study with each ``key=value`` in place of what it had. Raises `UsageError`."""
    base, grid, also, own = dict(study.base), dict(study.grid), list(study.also), {}
    for change in changes:
        key, value = _parsed(change)
        if key in OWN:
            own[key] = value
            continue
        grid.pop(key, None)
        also = [one for one in also if key not in one]  # what was asked for excludes what was chosen before
        base.pop(key, None)
        if not isinstance(value, list) or key.endswith("_lengths"):
            base[key] = value
        else:
            grid[key] = value
    try:
        made = StudyConfig.model_validate({**study.model_dump(), **own, "base": base, "grid": grid, "also": also})
    except ValidationError as error:
        raise UsageError(f"study {study.name!r}: {first_line(error)}") from error
    made.runs()
    return made


def first_line(error: ValidationError) -> str:
    """What pydantic found first, in one line: where, what came, and why not."""
    one = error.errors()[0]
    where = ".".join(str(part) for part in one["loc"])
    why = str(one["msg"]).removeprefix("Value error, ")
    came = (
        "" if why.startswith(("expected", f"{where}:")) or isinstance(one["input"], dict) else f", got {one['input']!r}"
    )
    return f"{where}: {why}{came}" if where and not why.startswith(f"{where}:") else f"{why}{came}"


def _parsed(change: str) -> tuple[str, Any]:
    """The key and the value of ``key=value``; with commas, a list."""
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise UsageError(f"expected key=value, such as steps=100 or encoding=rotary,alibi, got {change!r}")
    try:
        return key, yaml.safe_load(f"[{text}]" if "," in text and text[:1] not in "[{" else text)
    except yaml.YAMLError as error:
        raise UsageError(f"{key}: expected a number, a word, or several with commas, got {text!r}") from error


def _made(of: str, together: dict[str, Any]) -> RunConfig:
    """A run from all of its settings."""
    settings: dict[str, Any] = {}
    _check_keys(of, together)
    for key in sorted(together, key=lambda key: "." in key):  # a question, then its settings
        _put(settings, key, together[key])
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        raise UsageError(f"{of}: {first_line(error)}") from error


def _put(settings: dict[str, Any], key: str, value: object) -> None:
    """Set a key, or for ``question.setting`` a setting of the question."""
    _, dot, rest = key.partition(".")
    if not dot:
        settings[key] = value
        return
    held = settings.get(QUESTION)
    inner = {NAME: held} if isinstance(held, str) else dict(held) if isinstance(held, dict) else {}
    settings[QUESTION] = {**inner, rest: value}


def _check_keys(of: str, settings: dict[str, Any]) -> None:
    for key in settings:
        if key not in RunConfig.model_fields and not key.startswith(f"{QUESTION}."):
            close = difflib.get_close_matches(key, RunConfig.model_fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(RunConfig.model_fields)}"
            raise UsageError(f"{of}: no setting is named {key!r}; {hint}")
