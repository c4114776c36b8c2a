"""A question about a convention: a call whose answer is read off its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from orderproof.records.conventions import FunctionKind, QuestionRecord

REFUSED = "refused"
ENDED = "ends its process"
OTHER = "something else"


@dataclass(frozen=True)
class Question:
    """A question that every function of a kind is asked.

    Attributes:
        name: Its name.
        kind: The kind of function.
        text: The question.
        breaks: What goes wrong where two functions answer it differently.
        ask: From a function to its answer, a short text; it may raise what the function raises.
        needs: The arguments that the function must take.

    """

    name: str
    kind: FunctionKind
    text: str
    breaks: str
    ask: Callable[[Any], str]
    needs: frozenset[str] = frozenset()

    @property
    def record(self) -> QuestionRecord:
        """The question as a record."""
        return QuestionRecord(name=self.name, kind=self.kind, text=self.text, breaks=self.breaks)


def same(found: Tensor, expected: Tensor, tolerance: float = 1e-3) -> bool:
    """True if two tensors are finite and agree up to the rounding of a narrow dtype."""
    return found.shape == expected.shape and bool(((found.double() - expected.double()).abs() <= tolerance).all())


def combined(answers: dict[str, str]) -> str:
    """One answer of several cases: the common one, or each with its cases."""
    cases: dict[str, list[str]] = {}
    for case, answer in answers.items():
        cases.setdefault(answer, []).append(case)
    if len(cases) == 1:
        return next(iter(cases))
    return "; ".join(f"{answer} ({', '.join(names)})" for answer, names in cases.items())
