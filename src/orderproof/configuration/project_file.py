"""The configuration of a project: `orderproof.toml`, or `[tool.orderproof]` in `pyproject.toml`.

    timeout = 60                      # an option of every subject

    [subjects.decoder]
    subject = "model.py:decoder"
    as = "decoder"                    # its own options

Keys are the long options of `orderproof audit`, whose signature decides which there are and what they take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orderproof.configuration.toml_file import TomlFile, read_toml, shown_path
from orderproof.errors import UsageError

FILE, PYPROJECT = "orderproof.toml", "pyproject.toml"
TABLE = ("tool", "orderproof")  # in PYPROJECT
SUBJECTS, SUBJECT = "subjects", "subject"  # the table of subjects, and the key for what is audited
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_REPOSITORY = ".git"  # the folder that has it is the last one in which a configuration is looked for


@dataclass(frozen=True)
class ConfiguredSubject:
    """One table: a subject as on the command line, and values of options by their names without dashes."""

    name: str
    spec: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Configuration:
    """The file, the options of every subject, and the subjects by name."""

    file: TomlFile
    table: tuple[str, ...] = ()  # where in the file the configuration is
    options: Mapping[str, Any] = field(default_factory=dict)
    subjects: Mapping[str, ConfiguredSubject] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder in which subjects are audited: relative paths begin there."""
        return self.file.path.parent

    def error(self, subject: str | None, key: str | None, problem: str) -> UsageError:
        """An error at the line of a key of a subject, of a subject, or (None) of a key for every subject."""
        place = () if subject is None else (SUBJECTS, subject)
        return self.file.error((*self.table, *place, *(() if key is None else (key,))), problem)


def find_configuration(folder: Path) -> Configuration | None:
    """The configuration of the nearest folder that has one, from this folder upwards. Raises `UsageError`."""
    for each in (folder, *folder.parents):
        found = list(_configurations(each))
        if len(found) > 1:
            one, other = found
            names = f"{shown_path(one.file.path)} and {shown_path(other.file.path)}"
            raise other.error(None, None, f"expected one configuration; {names} have one; keep one of them")
        if found:
            return found[0]
        if (each / _REPOSITORY).exists():
            return None
    return None


def _configurations(folder: Path) -> Iterator[Configuration]:
    if (own := folder / FILE).is_file():
        yield _configuration(read_toml(own, "a configuration"), ())
    shared = folder / PYPROJECT
    if shared.is_file() and "orderproof" in shared.read_text(encoding="utf-8", errors="replace"):
        file = read_toml(shared, "a configuration")
        if TABLE[1] in file.data.get(TABLE[0], {}):
            yield _configuration(file, TABLE)


def _configuration(file: TomlFile, table: tuple[str, ...]) -> Configuration:
    data: Any = file.data
    for key in table:
        data = data[key]
    if not isinstance(data, dict):
        raise file.error(table, f"expected a table [{'.'.join(table)}]; got {data!r}")
    subjects = data.get(SUBJECTS, {})
    place = (*table, SUBJECTS)
    if not isinstance(subjects, dict):
        raise file.error(place, f"expected a table for each subject, as [{'.'.join(place)}.decoder]; got {subjects!r}")
    found = {name: _subject(file, (*place, name), name, stated) for name, stated in subjects.items()}
    return Configuration(file, table, {key: value for key, value in data.items() if key != SUBJECTS}, found)


def _subject(file: TomlFile, place: tuple[str, ...], name: str, stated: Any) -> ConfiguredSubject:
    if not NAME.fullmatch(name):
        raise file.error(place, f"expected letters, digits, '.', '_' and '-' in the name of a subject; got {name!r}")
    if not isinstance(stated, dict):
        raise file.error(place, f"expected a table with {SUBJECT} = ...; got {stated!r}")
    spec = stated.get(SUBJECT)
    if not isinstance(spec, str) or not spec:
        got = "none" if spec is None else repr(spec)
        at = place if spec is None else (*place, SUBJECT)
        raise file.error(at, f'expected {SUBJECT} = "model.py:build", as on the command line; got {got}')
    return ConfiguredSubject(name, spec, {key: value for key, value in stated.items() if key != SUBJECT})
