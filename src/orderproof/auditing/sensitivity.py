"""How far a model's outputs move when words change places, against how far unrelated sentences lie apart.

    moved(kind) = median over sentences s of  d(v(s), v(s with its words moved))
    share(kind) = median over sentences s of  d(v(s), v(s with its words moved)) / median over others t of d(v(s), v(t))

v is the sentence vector, d a distance. A share of 0 is a bag of words; at 1 the order of its words tells two sentences
apart as much as their words do. Every change keeps the tokens: the same numbers, as often, with the special tokens
and the closing mark in their places. Sentences are run one at a time with all their changes, so nothing is padded.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast, get_args

import torch
from torch import Tensor

from orderproof.auditing.distances import Cloud, pooled
from orderproof.auditing.moved_rows import Prepared, prepare
from orderproof.auditing.rearranging import KINDS
from orderproof.auditing.sentences import Sentence, bundled_sentences
from orderproof.auditing.steps import subject_record, versions
from orderproof.auditing.unordered import without_positions
from orderproof.driver import Driver
from orderproof.errors import OrderproofError, SubjectError, UsageError
from orderproof.prover.capture import first_line
from orderproof.sensitivity_record import Example, Layer, Pooling, Sensitivity
from orderproof.subjects import Subject
from orderproof.subjects.words import Words

BUNDLED = "the bundled list"
LIMIT = 100
MOST = 1000
Progress = Callable[[str, int, int], None]


def sensitivity(
    subject: Subject,
    sentences: Sequence[Sentence] | None = None,
    *,
    source: str = BUNDLED,
    pooling: str | None = None,
    limit: int = LIMIT,
    seed: int = 0,
    progress: Progress | None = None,
) -> Sensitivity:
    """Move the words of sentences and measure how far the model's outputs move.

    ``pooling``: mean, first or last; as the model's folder states by default, else mean, for causal LMs last.
    Raises `UsageError`, `SubjectError`.
    """
    began = time.perf_counter()
    tell = progress or (lambda text, done, total: None)
    words, driver = reader_of(subject)
    chosen, chosen_by = _pooling(subject, words, pooling)
    if not 2 <= limit <= MOST:
        raise UsageError(f"expected --limit from 2 to {MOST} sentences; got {limit}")
    given = tuple(bundled_sentences() if sentences is None else sentences)[:limit]
    made = [prepare(sentence, words, pooling=chosen, seed=seed) for sentence in given]
    prepared = [p for p in made if isinstance(p, Prepared)]
    left_out = Counter(reason for reason in made if isinstance(reason, str))
    if len(prepared) < 2:
        said = "; ".join(f"{count} with {reason}" for reason, count in left_out.items()) or "no others"
        raise UsageError(f"expected at least 2 sentences to compare; got {len(prepared)} of {source} ({said})")
    total = len(prepared) + 1
    clouds: list[Cloud] = []
    for done, sentence in enumerate(prepared):
        tell(f"sentence {done + 1} of {len(prepared)}", done, total)
        states = _hidden(subject, words, driver, sentence.rows)
        clouds = clouds or [Cloud() for _ in states]
        for cloud, state in zip(clouds, states, strict=True):
            cloud.add(sentence.kinds, pooled(state, chosen))
    tell("without positions", total - 1, total)
    without = without_positions(subject, words, prepared, pooling=chosen, order=KINDS, seed=seed)
    layers = tuple(Layer(layer=k, moved=cloud.summary(KINDS, seed=seed)) for k, cloud in enumerate(clouds))
    return Sensitivity(
        orderproof=versions()["orderproof"], subject=subject_record(subject), source=source, sentences=len(prepared),
        left_out=dict(left_out), pooling=chosen, pooling_from=chosen_by, seed=seed, moved=layers[-1].moved,
        layers=layers, without=without, examples=_examples(prepared), versions=versions(),
        seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def reader_of(subject: Subject) -> tuple[Words, Driver]:
    """What reads sentences for a subject, and how it is called. Raises `UsageError`."""
    if subject.words is None or subject.driver is None:
        raise UsageError(f"{subject.name}: reads no text; expected a checkpoint folder with weights and a tokenizer")
    return subject.words, subject.driver()


def _pooling(subject: Subject, words: Words, asked: str | None) -> tuple[Pooling, str]:
    if asked is not None:
        if asked not in get_args(Pooling):
            raise UsageError(f"expected --pooling {', '.join(get_args(Pooling))}; got {asked!r}")
        return cast("Pooling", asked), "as asked"
    if words.pooling is not None:
        return cast("Pooling", words.pooling), "as its 1_Pooling/config.json states"
    return ("last", "as of a causal language model") if subject.kind == "causal_lm" else ("mean", "by default")


def _hidden(subject: Subject, words: Words, driver: Driver, numbers: Tensor) -> tuple[Tensor, ...]:
    """The states of every layer for each row. Raises `SubjectError`."""
    try:
        vectors = driver.draw(1, 2, 0).is_floating_point()
        with torch.no_grad():
            states = driver.hidden(words.inputs(numbers) if vectors else numbers)
    except OrderproofError as error:
        raise SubjectError(f"{subject.name}: {error}") from error
    except Exception as error:  # the model is not ours: anything may come
        raise SubjectError(f"{subject.name}: cannot be run: {type(error).__name__}: {first_line(error)}") from error
    if not all(bool(torch.isfinite(state).all()) for state in states):
        raise SubjectError(f"{subject.name}: the states of its layers are not finite (NaN or infinity)")
    return states


def _examples(prepared: Sequence[Prepared]) -> tuple[Example, ...]:
    """The first of each kind."""
    found: dict[str, Example] = {}
    for sentence in prepared:
        for example in sentence.examples:
            found.setdefault(example.kind, example)
    return tuple(found[kind] for kind in KINDS if kind in found)
