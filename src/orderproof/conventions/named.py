"""The functions of libraries by their names, `torch.sdpa`, and the questions of each kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from orderproof.conventions.library import AnyFunction, Library, libraries
from orderproof.conventions.library_calls import calls_of, functions_of
from orderproof.conventions.own_function import own_function
from orderproof.conventions.question import Question
from orderproof.errors import UsageError
from orderproof.records.conventions import FunctionKind
from orderproof.registry import did_you_mean, discover

_NAME = re.compile(r"(?P<library>\w+)(\.(?P<function>\w+))?(@(?P<version>[\w.]+)|:(?P<python>.*[/\\].*))?")


@cache
def questions_of(kind: FunctionKind) -> tuple[Question, ...]:
    """The questions that functions of a kind are asked."""
    return discover(f"orderproof.conventions.{kind}.questions", "QUESTION", Question)


def function_names() -> list[str]:
    """The full names of the functions of all installed libraries."""
    return [each.name for library in libraries().values() if _is_here(library) for each in functions_of(library, None)]


def libraries_elsewhere() -> list[Library]:
    """The libraries that this process does not call: they need variables, or an environment of their own."""
    return [each for each in libraries().values() if not _is_here(each)]


def _is_here(library: Library) -> bool:
    return bool(library.version_here) and not library.variables


def find_functions(names: Sequence[str]) -> list[AnyFunction]:
    """The functions that texts name: `torch`, `torch.sdpa`, `jax@0.10.2`, `jax:PYTHON`, `file.py:attention`.

    Raises `UsageError`, `SubjectError`, `EngineError`.
    """
    found: list[AnyFunction] = []
    for name in names:
        stated = _NAME.fullmatch(name)
        if stated is None or (":" in name and not stated["python"]):
            found.append(own_function(name))
            continue
        library = libraries().get(stated["library"])
        every = [] if library is None else _functions(library, stated["version"] or "", stated["python"] or "")
        chosen = [each for each in every if stated["function"] in (None, _short(each))]
        if not chosen:
            known = [*libraries(), *map(_plain, every)]
            raise UsageError(
                f"expected a library, one of its functions, or file.py:function; got {name!r}"
                f"{did_you_mean(name, known)}; orderproof conventions --list shows all"
            )
        found += chosen
    return found


def _functions(library: Library, version: str, python: str) -> list[AnyFunction]:
    """The functions of a library; where a version or an interpreter is stated, their names have the version."""
    if python:
        interpreter = Path(python).expanduser().absolute()
        if not interpreter.is_file():
            raise UsageError(f"expected the interpreter of an environment with {library.name}; no file {python}")
        return functions_of(library, interpreter, f"@{calls_of(library, interpreter).version.partition(' ')[2]}")
    wanted = replace(library, wanted=version)
    return functions_of(wanted, wanted.interpreter, f"@{version}" if version else "")


def _plain(function: AnyFunction) -> str:
    return function.name.partition("@")[0]


def _short(function: AnyFunction) -> str:
    return _plain(function).partition(".")[2]
