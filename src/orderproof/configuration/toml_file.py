"""A TOML file whose errors name their line: `orderproof.toml:7: unknown key 'lenght'`.

The parser of Python keeps no line numbers. A statement begins at the first line that is needed for its key to be
there, so lines are found by parsing the beginning of the file again; only an error has to know one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderproof.errors import UsageError

KeyPath = Sequence[str | int]  # ("subjects", "decoder", "length"); a number is a place in an array of tables
_AT = re.compile(r"(?P<problem>.*?) \(at (?:line (?P<line>\d+), column \d+|end of document)\)")


@dataclass(frozen=True)
class TomlFile:
    """The text and the values of one file."""

    path: Path
    text: str
    data: dict[str, Any]

    def error(self, place: KeyPath, problem: str) -> UsageError:
        """An error at the line of a key."""
        return UsageError(f"{shown_path(self.path)}:{self.line(place)}: {problem}")

    def line(self, place: KeyPath) -> int:
        """The first line of the statement that gives this key its value, or 1 if there is none."""
        lines = self.text.splitlines(keepends=True)
        first, last = 1, len(lines)
        while first < last:
            middle = (first + last) // 2
            if _has(_beginning(lines, middle), place):
                last = middle
            else:
                first = middle + 1
        return first if _has(self.data, place) else 1


def read_toml(path: Path, what: str) -> TomlFile:
    """Read a file; `what` names it in errors: "a baseline". Raises `UsageError` with the line of what is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{shown_path(path)}: {what} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{shown_path(path)}: expected {what} in UTF-8; got other bytes") from None
    try:
        return TomlFile(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_syntax_error(path, text, str(error))) from None


def shown_path(path: Path) -> str:
    """A path as a user of the working folder names it."""
    return os.path.relpath(path)


def _syntax_error(path: Path, text: str, message: str) -> str:
    found = _AT.fullmatch(message)
    lines = text.splitlines() or [""]
    line = int(found["line"]) if found and found["line"] else len(lines)
    problem = found["problem"] if found else message
    if problem.startswith(("Cannot declare", "Cannot overwrite")):  # of a table, or of a key
        given = lines[line - 1].partition("#")[0].strip()
        name = given.strip("[]") if given.startswith("[") else given.partition("=")[0].strip()
        return f"{shown_path(path)}:{line}: {name} is there twice; keep one"
    return f"{shown_path(path)}:{line}: expected TOML; {problem[:1].lower()}{problem[1:]}"


def _beginning(lines: Sequence[str], number: int) -> dict[str, Any]:
    """The values of the first lines and of those that complete their last statement."""
    while number < len(lines):
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads("".join(lines[:number]))
        number += 1
    return tomllib.loads("".join(lines))


def _has(data: Any, place: KeyPath) -> bool:
    for key in place:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True
