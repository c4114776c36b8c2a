"""How far the outputs of a model move when words are reordered, relative to the distance between sentences.

    distance(kind) = median over sentences s of  d(v(s), v(s reordered))
    share(kind)    = median over sentences s of  d(v(s), v(s reordered)) / median over others t of d(v(s), v(t))

v is the sentence vector, d a distance. A bag of words has a share of 0. At a share of 1, reordering a sentence moves it
as far as replacing it. Every reordering keeps the multiset of tokens, and the special tokens and the closing mark keep
their positions. Each sentence is run in one batch with its reorderings, so nothing is padded.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.auditing.built_report import subject_record
from orderproof.errors import OrderproofError, SubjectError, UsageError, first_line
from orderproof.models import Subject
from orderproof.models.hf.tokenizer import SentenceTokenizer
from orderproof.records.document import versions
from orderproof.records.sensitivity import LayerEffects, PerturbationExample, Pooling, WordOrderSensitivity
from orderproof.word_order.batches import SentenceBatch, build_batch
from orderproof.word_order.distances import SentenceVectors, pool
from orderproof.word_order.options import DEFAULT_SENTENCES, check_options
from orderproof.word_order.perturbations import PERTURBATIONS
from orderproof.word_order.sentences import Sentence, bundled_sentences
from orderproof.word_order.without_positions import without_positions

BUNDLED_SOURCE = "the bundled list"
ProgressCallback = Callable[[str, int, int], None]


def measure_sensitivity(
    subject: Subject,
    sentences: Sequence[Sentence] | None = None,
    *,
    source: str = BUNDLED_SOURCE,
    pooling: str | None = None,
    limit: int = DEFAULT_SENTENCES,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> WordOrderSensitivity:
    """Reorder the words of sentences and measure how far the model's outputs move.

    `sentences`: the bundled ones by default. `pooling`: "mean", "first" or "last"; by default as the model's folder
    states, otherwise "last" for causal language models and "mean" for others.
    Raises `UsageError`, `SubjectError`.
    """
    start = time.perf_counter()
    report = progress or (lambda text, done, total: None)
    tokenizer, adapter = tokenizer_and_adapter(subject)
    check_options(pooling, limit)
    chosen, chosen_by = _pooling(subject, tokenizer, pooling)
    selected = tuple(bundled_sentences() if sentences is None else sentences)[:limit]
    built = [build_batch(sentence, tokenizer, pooling=chosen, seed=seed) for sentence in selected]
    batches = [each for each in built if isinstance(each, SentenceBatch)]
    excluded = Counter(reason for reason in built if isinstance(reason, str))
    if len(batches) < 2:
        reasons = "; ".join(f"{count} with {reason}" for reason, count in excluded.items()) or "no others"
        raise UsageError(f"expected at least 2 sentences to compare; got {len(batches)} of {source} ({reasons})")
    total = len(batches) + 1
    layer_vectors: list[SentenceVectors] = []
    for done, batch in enumerate(batches):
        report(f"sentence {done + 1} of {len(batches)}", done, total)
        states = _hidden_states(subject, tokenizer, adapter, batch.rows)
        layer_vectors = layer_vectors or [SentenceVectors() for _ in states]
        for vectors, state in zip(layer_vectors, states, strict=True):
            vectors.add(batch.perturbations, pool(state, chosen))
    report("without positions", total - 1, total)
    without = without_positions(subject, tokenizer, batches, pooling=chosen, order=PERTURBATIONS, seed=seed)
    layers = tuple(
        LayerEffects(layer=k, effects=vectors.summary(PERTURBATIONS, seed=seed))
        for k, vectors in enumerate(layer_vectors)
    )
    return WordOrderSensitivity(
        orderproof=versions()["orderproof"], subject=subject_record(subject), source=source, sentences=len(batches),
        excluded=dict(excluded), pooling=chosen, pooling_source=chosen_by, seed=seed, effects=layers[-1].effects,
        layers=layers, without_positions=without, examples=_examples(batches), versions=versions(),
        seconds=round(time.perf_counter() - start, 3),
    )  # fmt: skip


def tokenizer_and_adapter(subject: Subject) -> tuple[SentenceTokenizer, ModelAdapter]:
    """The tokenizer and the adapter of a subject. Raises `UsageError` for one without text input."""
    if subject.tokenizer is None or subject.build_adapter is None:
        raise UsageError(
            f"{subject.name}: has no text input; expected a checkpoint folder with weights and a tokenizer"
        )
    return subject.tokenizer, subject.build_adapter()


def _pooling(subject: Subject, tokenizer: SentenceTokenizer, requested: str | None) -> tuple[Pooling, str]:
    if requested is not None:
        return cast("Pooling", requested), "as requested"
    if tokenizer.pooling is not None:
        return cast("Pooling", tokenizer.pooling), "as its 1_Pooling/config.json states"
    return (
        ("last", "the default for causal language models")
        if subject.model_kind == "causal_lm"
        else ("mean", "by default")
    )


def _hidden_states(
    subject: Subject, tokenizer: SentenceTokenizer, adapter: ModelAdapter, token_ids: Tensor
) -> tuple[Tensor, ...]:
    """The hidden states [row, token, feature] of every layer. Raises `SubjectError`."""
    try:
        takes_vectors = adapter.sample_tokens(1, 2, 0).is_floating_point()
        with torch.no_grad():
            states = adapter.hidden_states(tokenizer.to_inputs(token_ids) if takes_vectors else token_ids)
    except OrderproofError as error:
        raise SubjectError(f"{subject.name}: {error}") from error
    except Exception as error:  # a third-party model may raise anything
        raise SubjectError(f"{subject.name}: cannot be run: {first_line(error)}") from error
    if not all(bool(torch.isfinite(state).all()) for state in states):
        raise SubjectError(f"{subject.name}: the hidden states are not finite (NaN or infinity)")
    return states


def _examples(batches: Sequence[SentenceBatch]) -> tuple[PerturbationExample, ...]:
    """The first example of each kind of reordering."""
    first: dict[str, PerturbationExample] = {}
    for batch in batches:
        for example in batch.examples:
            first.setdefault(example.kind, example)
    return tuple(first[kind] for kind in PERTURBATIONS if kind in first)
