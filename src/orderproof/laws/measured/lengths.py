"""The lengths at which laws are measured: the default one, and below, at and past each threshold of a model.

A threshold is a number of tokens at which a model may change its behaviour: a window, a chunk, the width of a
convolution, the original context length of a scaled rotary encoding, the rows of a table. Many defects show on one
side of it only: a window that is one token too short, frequencies that change within a text, a mask that ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from orderproof.adapter import ModelAdapter, Threshold

MIN_LENGTH = 3  # [tokens] the laws about caches split a text into a prefix and two tokens
MAX_LENGTH = 300  # [tokens]
MAX_WORK = 1.2e7  # tokens times weights in matrices; a tiny model has 1e5 of these, with experts three times as many
SHORT_THRESHOLD = 20  # [tokens] crossed twice: the third chunk has a state that was carried over a whole chunk


def measured_lengths(adapter: ModelAdapter) -> tuple[int, ...]:
    """The lengths [tokens] to measure at, in increasing order; the default one is among them."""
    lengths = {n for threshold in affordable_thresholds(adapter) for n in _lengths_around(threshold.tokens)}
    longest = adapter.max_positions or MAX_LENGTH + 1
    return tuple(sorted({adapter.default_length, *(n for n in lengths if MIN_LENGTH <= n <= longest)}))


def affordable_thresholds(adapter: ModelAdapter) -> tuple[Threshold, ...]:
    """The thresholds that a text just past them can be measured at."""
    if not adapter.has_token_axis:
        return ()
    longest = min(MAX_LENGTH, MAX_WORK / max(matrix_weight_count(adapter.module), 1))
    return tuple(t for t in adapter.thresholds if t.tokens < longest)


def skipped_thresholds(adapter: ModelAdapter) -> tuple[Threshold, ...]:
    """The thresholds around which nothing is measured, because it would take too long."""
    affordable = set(affordable_thresholds(adapter))
    return tuple(t for t in adapter.thresholds if t not in affordable) if adapter.has_token_axis else ()


def thresholds_near(thresholds: Iterable[Threshold], tokens: int) -> tuple[Threshold, ...]:
    """The thresholds that a text of this length just reaches or passes."""
    return tuple(t for t in thresholds if abs(tokens - t.tokens) <= 1)


def _lengths_around(tokens: int) -> set[int]:
    """The default length is below a long threshold; around a short one a single token may matter."""
    return {tokens, tokens + 1, *((tokens - 1, 2 * tokens + 1) if tokens <= SHORT_THRESHOLD else ())}


def matrix_weight_count(module: nn.Module) -> int:
    """The number of weights that every token is multiplied by."""
    tables = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
    return sum(p.numel() for p in module.parameters() if p.dim() > 1 and id(p) not in tables)
