"""The options of a command as a configuration states them: names, types and checks are those of its signature."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

from orderproof.configuration.project_file import SUBJECT, SUBJECTS, Configuration
from orderproof.configuration.toml_file import shown_path
from orderproof.errors import UsageError
from orderproof.registry import did_you_mean

PATH = "PATH"  # the metavar of an option that names a file
NO_CACHE, JOBS = "no-cache", "jobs"
OF_A_RUN = frozenset({JOBS, "baseline", NO_CACHE})  # of all subjects together, so above the subjects
ONLY_ON_THE_COMMAND_LINE = frozenset({"quiet", "write-baseline", "resume", "watch"})
OTHER_WORDS = {  # as in Python, or as a reader may guess
    "kind": "as", "laws": "law", "roles": "role", "expectations": "expect", "output_axes": "output-axes",
    "token_axis": "token-axis", "backend": "attention", "engine": "against", "engines": "against",
}  # fmt: skip


@dataclass(frozen=True)
class StatedOption:
    """One option: its key in a file, the parameter of the command, and what it takes."""

    key: str
    parameter: str
    kind: type  # bool, int, float, str, Path
    repeatable: bool = False
    choices: tuple[str, ...] = ()
    metavar: str = ""
    least: float | None = None
    check: Callable[[Any], Any] | None = None

    @property
    def is_file(self) -> bool:
        """True if it names a file."""
        return self.metavar == PATH or self.kind is Path

    @property
    def takes_pairs(self) -> bool:
        """True if each value is NAME=VALUE, for which a file may have a table."""
        return self.repeatable and "=" in self.metavar

    def value(self, stated: Any) -> Any:
        """The value as the command takes it. Raises `UsageError` for another type, or for a value that is refused."""
        value: Any
        if self.takes_pairs and isinstance(stated, dict):
            value = [f"{name}={self._one(each, stated)}" for name, each in stated.items()]
        elif self.repeatable:
            value = [self._one(each, stated) for each in (stated if isinstance(stated, list) else [stated])]
        else:
            value = self._one(stated, stated)
        if self.choices and value not in self.choices:
            hint = did_you_mean(value, self.choices)
            raise UsageError(f"expected {self.key} to be {' or '.join(self.choices)}; got {value!r}{hint}")
        if self.least is not None and not value >= self.least:  # nan is not
            raise UsageError(f"expected {self.key} of at least {self.least:g}; got {value}")
        if self.check is not None:
            self.check(value)
        return value

    def _one(self, given: Any, stated: Any) -> Any:
        is_number = isinstance(given, int) and not isinstance(given, bool)
        if self.kind is float and is_number:
            return float(given)
        if self.kind is Path and type(given) is str:
            return given
        if self.kind is str and is_number:  # token-axis = 1
            return str(given)
        if type(given) is not self.kind:
            raise UsageError(f"expected {self.key} to be {self._expected}; got {_shown(stated)}")
        return given

    @property
    def _expected(self) -> str:
        one = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a text"}[
            self.kind
        ]
        pairs = f", or a table with {self.metavar}" if self.takes_pairs else ""
        return f"{one} or an array of them{pairs}" if self.repeatable else one


def options_of(command: Callable[..., Any]) -> dict[str, StatedOption]:
    """By their keys, the options of a command that a configuration can state."""
    hints = get_type_hints(command, include_extras=True)
    found = (_option(name, hints[name]) for name in inspect.signature(command).parameters)
    return {each.key: each for each in found if each is not None and each.key not in ONLY_ON_THE_COMMAND_LINE}


def _option(parameter: str, hint: Any) -> StatedOption | None:
    if get_origin(hint) is not Annotated:
        return None
    inner, info = get_args(hint)[:2]
    if not isinstance(info, OptionInfo):
        return None
    names = (info.default, *(info.param_decls or ()))  # of an annotation, typer takes the first for the default
    key = next(name for name in names if isinstance(name, str) and name.startswith("--")).removeprefix("--")
    kinds = [each for each in _alternatives(inner) if each is not type(None)]
    repeatable = get_origin(kinds[0]) is list
    kind = get_args(kinds[0])[0] if repeatable else kinds[0]
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return StatedOption(
        key, parameter, str if choices else kind, repeatable, choices, info.metavar or "", info.min, info.callback
    )


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def stated_for_subject(
    configuration: Configuration, name: str, options: Mapping[str, StatedOption], known: Mapping[str, StatedOption]
) -> dict[str, Any]:
    """The values that a file states for a subject, by the parameters of a command with these options.

    ``known`` are the options of `audit`: what they lack is refused, and what only this command lacks is left out.
    Raises `UsageError` with file and line.
    """
    subject = configuration.subjects[name]
    values = dict(_checked(configuration, None, configuration.options, known))
    for key, option in known.items():
        if key == JOBS or (option.is_file and key not in OF_A_RUN):  # files of all subjects together
            values.pop(key, None)
    values |= dict(_checked(configuration, name, subject.options, known))
    files = [key for key, option in known.items() if option.is_file and key not in OF_A_RUN]
    for key in files:
        if key in subject.options:
            _check_file(configuration, name, key, files)
    return {options[key].parameter: value for key, value in values.items() if key in options}


def _check_file(configuration: Configuration, name: str, key: str, files: Sequence[str]) -> None:
    """Raises `UsageError` for a key whose file is not one of this subject alone."""
    path = configuration.subjects[name].options[key]
    if path == "-":
        raise configuration.error(name, key, f"expected {key} to be a file; '-' is for the command line")
    for other in configuration.subjects.values():
        for each in files:
            if other.options.get(each) == path and (other.name, each) != (name, key):
                raise configuration.error(name, key, f"{each} of {other.name!r} is {path!r} too; name another file")


def stated_for_run(configuration: Configuration, options: Mapping[str, StatedOption]) -> dict[str, Any]:
    """The values of the options of all subjects together, by parameter. Raises `UsageError` with file and line."""
    values = dict(_checked(configuration, None, configuration.options, options))
    of_run = {key: value for key, value in values.items() if key in OF_A_RUN or options[key].is_file}
    folder = configuration.folder  # the run stays in the working folder
    return {
        options[key].parameter: shown_path(folder / value) if options[key].is_file and value != "-" else value
        for key, value in of_run.items()
    }


def _checked(
    configuration: Configuration, subject: str | None, stated: Mapping[str, Any], known: Mapping[str, StatedOption]
) -> Iterator[tuple[str, Any]]:
    for key, value in stated.items():
        try:
            yield key, _known(key, known, subject).value(value)
        except UsageError as error:
            raise configuration.error(subject, key, str(error)) from None


def _known(key: str, known: Mapping[str, StatedOption], subject: str | None) -> StatedOption:
    if key in ONLY_ON_THE_COMMAND_LINE:
        raise UsageError(f"{key!r} is an option of the command line only; leave it out")
    if key not in known:
        where = "" if subject is None else f" of subject {subject!r}"
        hint = did_you_mean(key, [*known, SUBJECTS if subject is None else SUBJECT], OTHER_WORDS)
        raise UsageError(f"unknown key {key!r}{where}{hint or '; keys are the long options of orderproof audit'}")
    if subject is not None and key in OF_A_RUN:
        raise UsageError(f"{key!r} is of all subjects together; state it above them")
    return known[key]


def _shown(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
