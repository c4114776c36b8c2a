"""Proposals of a shell for an incomplete word: subjects of the configuration, architectures, laws, kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from orderproof.catalogue.laws import laws
from orderproof.configuration.project_file import find_configuration
from orderproof.errors import OrderproofError
from orderproof.subject_spec import ARCH_PREFIX, architectures_in_source


def subjects(incomplete: str) -> Iterator[tuple[str, str]]:
    """The subjects of the configuration, and after ``arch:`` the architectures; files are proposed by the shell."""
    with suppress(OrderproofError, OSError):  # a broken configuration is no reason to propose nothing else
        configuration = find_configuration(Path.cwd())
        for name, subject in configuration.subjects.items() if configuration is not None else ():
            if name.startswith(incomplete):
                yield name, subject.spec
    if incomplete.startswith(ARCH_PREFIX):
        names = (f"{ARCH_PREFIX}{name}" for name in sorted(architectures_in_source()))
        yield from ((name, "architecture of transformers") for name in names if name.startswith(incomplete))
    elif incomplete and ARCH_PREFIX.startswith(incomplete):
        yield ARCH_PREFIX, "an architecture of transformers"


def law_names(incomplete: str) -> Iterator[tuple[str, str]]:
    """The names and the codes of laws."""
    for law in laws():
        yield from ((text, law.statement) for text in (law.name, law.code) if text.startswith(incomplete))


def expectations(incomplete: str) -> Iterator[tuple[str, str]]:
    """``causal=holds`` and so on, once the law is there."""
    name, equals, _ = incomplete.partition("=")
    for law in laws():
        if equals and name in (law.name, law.code):
            values = (f"{name}={value}" for value in ("holds", "fails", "any"))
            yield from ((value, law.statement) for value in values if value.startswith(incomplete))
        elif not equals and law.name.startswith(incomplete):
            yield f"{law.name}=", law.statement


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """A function that proposes those of these names that begin so."""
    known = tuple(names)

    def proposed(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return proposed
