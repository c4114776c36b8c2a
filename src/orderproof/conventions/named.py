"""The functions of libraries by their names, `torch.sdpa`, and the questions of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from orderproof.conventions.library import AnyFunction, Library
from orderproof.conventions.own_function import own_function
from orderproof.conventions.question import Question
from orderproof.errors import UsageError
from orderproof.records.conventions import FunctionKind
from orderproof.registry import did_you_mean, discover


@cache
def questions_of(kind: FunctionKind) -> tuple[Question, ...]:
    """The questions that functions of a kind are asked."""
    return discover(f"orderproof.conventions.{kind}.questions", "QUESTION", Question)


@cache
def libraries() -> dict[str, Library]:
    """The libraries by their names; also those that are not installed."""
    return {each.name: each for each in discover("orderproof.conventions.libraries", "LIBRARY", Library)}


@cache
def functions_of(library: str) -> dict[str, AnyFunction]:
    """The functions of a library by their full names. Raises `UsageError` if it is not installed."""
    found = libraries()[library]
    if find_spec(found.package) is None:
        name = found.package.replace("_", "-")
        raise UsageError(f"{library} is not installed: pip install {name}")
    named = (replace(each, name=f"{library}.{each.name}") for each in found.functions())
    return {each.name: each for each in named}


def function_names() -> list[str]:
    """The full names of the functions of all installed libraries."""
    installed = (each.name for each in libraries().values() if find_spec(each.package) is not None)
    return [name for library in installed for name in functions_of(library)]


def find_functions(names: Sequence[str]) -> list[AnyFunction]:
    """The functions that texts name: `torch`, `torch.sdpa`, `file.py:attention`.

    Raises `UsageError`, `SubjectError`.
    """
    found: list[AnyFunction] = []
    for name in names:
        library = name.partition(".")[0]
        if ":" in name:
            found.append(own_function(name))
        elif name in libraries():
            found += functions_of(name).values()
        elif library in libraries() and name in functions_of(library):
            found.append(functions_of(library)[name])
        else:
            known = [*libraries(), *(functions_of(library) if library in libraries() else ())]
            raise UsageError(
                f"expected a library, one of its functions, or file.py:function; got {name!r}"
                f"{did_you_mean(name, known)}; orderproof conventions --list shows all"
            )
    return found
