"""Live audits: two sentences through the bundled model, with its positions and without, one audit at a time.

A request holds two sentences and nothing else; no path, no model and no option comes from outside. Audits are bounded
in size, one runs at a time, and so many may start within a minute.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orderproof.errors import OrderproofError, first_line
from orderproof.report.reading import problem_of

if TYPE_CHECKING:
    from orderproof.subjects import Subject

LONGEST = 200  # characters of a sentence
MOST_TOKENS = 32
A_MINUTE = 20  # audits

Sentence = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class Question(BaseModel):
    """Two sentences."""

    model_config = ConfigDict(extra="forbid")

    sentences: tuple[Sentence, Sentence]


class Refused(Exception):
    """A question that is not answered: the status of the response, and why in one sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def the_bundled_model() -> Subject:
    """The bundled model; torch and transformers are imported with the first question, not with the page."""
    from orderproof.subjects import bundled

    return bundled()


@dataclass
class Auditor:
    """Answers questions about one model, which is loaded with the first of them."""

    load: Callable[[], Subject] = the_bundled_model
    now: Callable[[], float] = time.monotonic
    _subject: Subject | None = None
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _started: deque[float] = field(default_factory=deque)

    def answer(self, body: bytes) -> dict[str, Any]:
        """The swap numbers of two sentences. Raises `Refused`."""
        question = _read(body)
        if not self._busy.acquire(blocking=False):
            raise Refused(429, "another audit is running: one at a time; try again when it has answered")
        try:
            self._count()
            return self._audit(*question.sentences)
        finally:
            self._busy.release()

    def _count(self) -> None:
        now = self.now()
        while self._started and now - self._started[0] >= 60:
            self._started.popleft()
        if len(self._started) >= A_MINUTE:
            raise Refused(429, f"{A_MINUTE} audits a minute are answered; try again in a while")
        self._started.append(now)

    def _audit(self, first: str, second: str) -> dict[str, Any]:
        from orderproof.auditing.pictures import swap_and_maps

        began = time.perf_counter()
        try:
            self._subject = self._subject or self.load()
            subject = self._subject
            assert subject.text is not None
            tokens = [subject.text(sentence).tokens for sentence in (first, second)]
            _check(tokens)
            found = swap_and_maps(subject, sentences=(first, second))
        except OrderproofError as error:
            raise Refused(503, str(error)) from error
        except RuntimeError as error:  # torch's own, as memory that is not there
            raise Refused(503, f"the model cannot be run on these sentences: {first_line(error)}") from error
        if found is None:
            raise Refused(422, "the model cannot be run on these two sentences without its positions")
        swap, _ = found
        return {
            "model": subject.name,
            "same_tokens": Counter(tokens[0]) == Counter(tokens[1]),
            "tokens": tokens,
            "rows": [row.model_dump() for row in swap.rows],
            "seconds": round(time.perf_counter() - began, 3),
        }


def _read(body: bytes) -> Question:
    try:
        question = Question.model_validate_json(body)
    except ValidationError as error:
        raise Refused(400, f'expected {{"sentences": ["...", "..."]}}: {problem_of(error)}') from None
    if not all(sentence.strip() for sentence in question.sentences):
        raise Refused(400, "expected two sentences with a word in each")
    return question


def _check(tokens: list[tuple[str, ...]]) -> None:
    first, second = map(len, tokens)
    if max(first, second) > MOST_TOKENS:
        raise Refused(422, f"expected at most {MOST_TOKENS} tokens; got {first} and {second}")
    if first != second:
        raise Refused(
            422, f"expected sentences of equally many tokens; got {first} and {second}, special ones included"
        )
