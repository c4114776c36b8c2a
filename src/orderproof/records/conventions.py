"""The records of measured conventions, as plain data (schema version 1). Nothing here imports torch."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from orderproof.records.document import Document, Record, schema_version

SCHEMA_VERSION = 1
NOT_TAKEN = "takes none"  # the answer of a function that has no such argument
TABLE = "docs/evidence/conventions/conventions.md"  # the answers of many libraries, with a section for each question
FunctionKind = Literal["attention", "rotation", "positions"]


def named_as_convention(*questions: str) -> str:
    """A sentence of a remedy: what is wrong is a convention, with the section that has the answers of libraries."""
    first, *others = (f"#{question}" for question in questions)
    return f"It is a convention in which libraries differ: {TABLE}{', '.join([first, *others])}."


class QuestionRecord(Record):
    """A question, and what breaks where two functions answer it differently."""

    name: str
    kind: FunctionKind
    text: str
    breaks: str


class AnswersRecord(Record):
    """The answers of one function."""

    function: str
    kind: FunctionKind
    version: str  # "torch 2.13.0", or the file of the user's function
    layout: str  # of its queries, or of what it rotates: "[row, head, token, width]"
    answers: dict[str, str]  # question -> answer

    @property
    def plain_name(self) -> str:
        """Its name without the version that is stated in it."""
        return self.function.partition("@")[0]

    def differs_from(self, other: AnswersRecord) -> tuple[str, ...]:
        """The questions that another function answers differently, of those for which both take the arguments."""
        shared = (name for name in self.answers if name in other.answers)
        return tuple(
            name for name in shared
            if NOT_TAKEN not in (self.answers[name], other.answers[name]) and self.answers[name] != other.answers[name]
        )  # fmt: skip


class ConventionsReport(Document):
    """Conventions of some functions."""

    schema_version: int = schema_version(SCHEMA_VERSION)
    kind: Literal["conventions"] = "conventions"
    questions: tuple[QuestionRecord, ...]
    functions: tuple[AnswersRecord, ...]
    against: str = ""  # the function that the first is compared with
    differing: tuple[str, ...] = ()  # the questions that these two answer differently

    def asked(self, question: str) -> dict[str, str]:
        """The answers to a question by function, of those that take its arguments."""
        every = ((each.function, each.answers.get(question, NOT_TAKEN)) for each in self.functions)
        return {function: answer for function, answer in every if answer != NOT_TAKEN}

    @property
    def of_two_versions(self) -> list[tuple[AnswersRecord, AnswersRecord]]:
        """Each function that was asked in two versions, one after the other."""
        by_name: dict[str, list[AnswersRecord]] = {}
        for each in self.functions:
            by_name.setdefault(each.plain_name, []).append(each)
        pairs = (pair for same in by_name.values() for pair in pairwise(same))
        return [(one, other) for one, other in pairs if one.version != other.version]

    @property
    def exit_code(self) -> int:
        """1 if the compared functions differ, else 0."""
        return int(bool(self.differing))
