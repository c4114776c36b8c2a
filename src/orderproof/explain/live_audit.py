"""Live audits: two sentences through the bundled model, with its positions and without.

A request has two sentences and nothing else: no path, model or option comes from outside. Sentences have a maximum
length, one audit runs at a time, and the number of audits per minute is limited.
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
from orderproof.report.json_input import first_validation_error

if TYPE_CHECKING:
    from orderproof.models import Subject

MAX_CHARACTERS = 200  # of a sentence
MAX_TOKENS = 32
AUDITS_PER_MINUTE = 20

Sentence = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


class AuditRequest(BaseModel):
    """Two sentences."""

    model_config = ConfigDict(extra="forbid")

    sentences: tuple[Sentence, Sentence]


class RequestError(Exception):
    """A rejected request: the status of the response and the reason in one sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def load_bundled_model() -> Subject:
    """The bundled model; torch and transformers are imported with the first request."""
    from orderproof.models import bundled

    return bundled()


@dataclass
class Auditor:
    """Runs requests on one model, which is loaded with the first request."""

    load: Callable[[], Subject] = load_bundled_model
    now: Callable[[], float] = time.monotonic
    _subject: Subject | None = None
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _start_times: deque[float] = field(default_factory=deque)

    def handle(self, body: bytes) -> dict[str, Any]:
        """The distances of the outputs for two sentences. Raises `RequestError`."""
        request = _read(body)
        if not self._busy.acquire(blocking=False):
            raise RequestError(429, "another audit is running; try again when it has finished")
        try:
            self._check_rate()
            return self._audit(*request.sentences)
        finally:
            self._busy.release()

    def _check_rate(self) -> None:
        now = self.now()
        while self._start_times and now - self._start_times[0] >= 60:
            self._start_times.popleft()
        if len(self._start_times) >= AUDITS_PER_MINUTE:
            raise RequestError(429, f"the limit is {AUDITS_PER_MINUTE} audits per minute; try again in a minute")
        self._start_times.append(now)

    def _audit(self, first: str, second: str) -> dict[str, Any]:
        from orderproof.auditing.explain.sentence_pair import compare_sentence_pair
        from orderproof.explain.all_heads import all_heads

        began = time.perf_counter()
        try:
            self._subject = self._subject or self.load()
            subject = self._subject
            assert subject.encode_sentence is not None
            tokens = [subject.encode_sentence(sentence).labels for sentence in (first, second)]
            _check(tokens)
            compared = compare_sentence_pair(subject, sentences=(first, second))
            heads = None if compared is None else all_heads(subject, (first, second))
        except OrderproofError as error:
            raise RequestError(503, str(error)) from error
        except RuntimeError as error:  # from torch, for example out of memory
            raise RequestError(503, f"the model cannot be run on these sentences: {first_line(error)}") from error
        if compared is None:
            raise RequestError(422, "the model cannot be run on these two sentences without its positions")
        pair, maps = compared
        return {
            "model": subject.name,
            "same_tokens": Counter(tokens[0]) == Counter(tokens[1]),
            "tokens": tokens,
            "rows": [row.model_dump() for row in pair.distances],
            "maps": [[[round(weight, 3) for weight in row] for row in each.weights] for each in maps],
            "heads": heads,
            "seconds": round(time.perf_counter() - began, 3),
        }


def _read(body: bytes) -> AuditRequest:
    try:
        request = AuditRequest.model_validate_json(body)
    except ValidationError as error:
        raise RequestError(400, f'expected {{"sentences": ["...", "..."]}}: {first_validation_error(error)}') from None
    if not all(sentence.strip() for sentence in request.sentences):
        raise RequestError(400, "expected two sentences with at least one word each")
    return request


def _check(tokens: list[tuple[str, ...]]) -> None:
    first, second = map(len, tokens)
    if max(first, second) > MAX_TOKENS:
        raise RequestError(422, f"expected at most {MAX_TOKENS} tokens; got {first} and {second}")
    if first != second:
        raise RequestError(
            422, f"expected sentences with the same number of tokens; got {first} and {second}, special tokens included"
        )
