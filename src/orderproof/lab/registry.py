"""The questions, found by listing their folder: one file, one question, its class in a variable named QUESTION."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from orderproof.errors import UsageError
from orderproof.lab.question import Question
from orderproof.registry import discover_classes, lookup

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


@cache
def questions() -> dict[str, type[Question]]:
    """The classes of all questions by name, in alphabetical order. Raises `UsageError` if two share a name."""
    by_name: dict[str, type[Question]] = {}
    for question in discover_classes("orderproof.lab.questions", "QUESTION", Question):  # type: ignore[type-abstract]
        if question.name in by_name:
            raise UsageError(f"question name '{question.name}' belongs to {by_name[question.name].__qualname__}")
        by_name[question.name] = question
    return dict(sorted(by_name.items()))


def get_question(name: str) -> type[Question]:
    """The class of the question with this name. Raises `UsageError`."""
    return lookup(name, questions(), "a question")


def make_question(name: str, settings: Mapping[str, Any]) -> Question:
    """The question with this name and these settings. Raises `UsageError` with one line for all invalid settings."""
    question = get_question(name)
    try:
        return question(**settings)
    except ValidationError as error:
        known = ", ".join(f"{key}={field.default}" for key, field in question.model_fields.items()) or "none"
        problems = "; ".join(_setting_problem(problem) for problem in error.errors(include_url=False))
        raise UsageError(f"expected settings of question {name!r} ({known}); got {problems}") from None


def _setting_problem(problem: ErrorDetails) -> str:
    """One invalid setting, in a few words."""
    setting = f"{'.'.join(map(str, problem['loc']))}={problem['input']}"
    if problem["type"] == "extra_forbidden":
        return f"{setting}, which is not a setting of it"
    return f"{setting}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
