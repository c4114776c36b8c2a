"""Every question, found by listing its folder: one file, one question, its class in a variable named QUESTION."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache

from orderproof.errors import UsageError
from orderproof.lab.question import Question


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
