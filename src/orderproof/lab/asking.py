"""Every question, found by listing its folder: one file, one question, its class in a variable named QUESTION."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from orderproof.errors import UsageError
from orderproof.lab.question import Question

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


@cache
def questions() -> dict[str, type[Question]]:
    """The classes of all questions by their names, in alphabetical order."""
    package = importlib.import_module("orderproof.lab.questions")
    found: dict[str, type[Question]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        question = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "QUESTION", None)
        if isinstance(question, type) and issubclass(question, Question):
            if question.name in found:
                raise UsageError(f"question name '{question.name}' belongs to {found[question.name].__qualname__}")
            found[question.name] = question
    return dict(sorted(found.items()))


def get(name: str) -> type[Question]:
    """The question with this name. Raises `UsageError`."""
    known = questions()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"expected a question, one of {', '.join(known)}; got {name!r}{hint}")
    return known[name]


def make(name: str, settings: Mapping[str, Any]) -> Question:
    """The question with this name and these settings. Raises `UsageError`, in one line for all that does not fit."""
    found = get(name)
    try:
        return found(**settings)
    except ValidationError as error:
        known = ", ".join(f"{key}={field.default}" for key, field in found.model_fields.items()) or "none"
        wrong = "; ".join(_told(problem) for problem in error.errors(include_url=False))
        raise UsageError(f"expected settings of question {name!r} ({known}); got {wrong}") from None


def _told(problem: ErrorDetails) -> str:
    """One problem of pydantic's in a few words."""
    given = f"{'.'.join(map(str, problem['loc']))}={problem['input']}"
    if problem["type"] == "extra_forbidden":
        return f"{given}, which it does not have"
    return f"{given}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
