"""Samples and the batch that a collator makes of them: where in the batch the tokens of each sample are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError, first_line
from orderproof.laws.training.training_batch import NAMES, TrainingBatch


@dataclass(frozen=True)
class Piece:
    """Tokens of a sample in a row of the batch: from `start`, those of the sample from `first` on."""

    sample: int
    first: int
    row: int
    start: int
    length: int

    @property
    def end(self) -> int:
        """The place after its last token in the row."""
        return self.start + self.length


@dataclass(frozen=True)
class Collation:
    """A collator and samples for it."""

    collate: Callable[[Any], Any]
    samples: Sequence[Any]

    def made(self) -> Any:
        """The batch as the collator gives it; the samples stay as they are. Raises `UnsupportedCallError`."""
        try:
            return self.collate(copy.deepcopy(list(self.samples)))
        except Exception as error:  # the code of the user
            raise UnsupportedCallError(f"the collator raised {first_line(error)}") from error

    def batch(self) -> TrainingBatch:
        """The batch of the samples. Raises `UnsupportedCallError`, `SubjectError`."""
        return TrainingBatch.of(self.made(), labelled=False)

    @cached_property
    def tokens(self) -> list[list[int]]:
        """The tokens of each sample. Raises `UnsupportedCallError`."""
        return [_ids(_field(sample, "tokens"), index) for index, sample in enumerate(self.samples)]

    @cached_property
    def labels(self) -> list[list[int] | None]:
        """The labels of each sample, None for one without."""
        found = [_field(sample, "labels") for sample in self.samples]
        return [None if x is None else _ids(x, index) for index, x in enumerate(found)]

    @cached_property
    def positions(self) -> list[list[int]]:
        """The position id of each token of each sample: one that was packed before says how long its documents are."""
        found = []
        for index, (sample, tokens) in enumerate(zip(self.samples, self.tokens, strict=True)):
            stated = sample.get("seq_lengths") if isinstance(sample, Mapping) else None
            lengths = [len(tokens)] if stated is None else _ids(stated, index)
            found.append([place for length in lengths for place in range(length)])
        return found


def _field(sample: Any, role: str) -> Any:
    if isinstance(sample, Mapping):
        return next((sample[name] for name in NAMES[role] if name in sample), None)
    if isinstance(sample, tuple) and len(sample) == 2:
        return sample[0 if role == "tokens" else 1]
    return sample if role == "tokens" else None


def _ids(value: Any, index: int) -> list[int]:
    found = value.tolist() if isinstance(value, Tensor) or type(value).__module__ == "numpy" else value
    if not isinstance(found, Sequence) or not all(isinstance(x, int) for x in found):
        raise UnsupportedCallError(f"sample {index} has no token ids: expected input_ids, a list of integers")
    return list(found)


def find_pieces(collation: Collation, tokens: Tensor) -> list[Piece]:
    """The pieces of the samples in the tokens of a batch [row, token]; longer samples choose first.

    A sample is where most of its tokens follow each other, from its first one on; at the end of a row it may go on at
    the beginning of the next one, if that is of no other sample.
    """
    width, flat = tokens.shape[1], tokens.flatten().tolist()
    free = [True] * len(flat)
    found: list[Piece] = []
    samples = collation.tokens
    for index in sorted(range(len(samples)), key=lambda i: -len(samples[i])):
        starts = [place for place, token in enumerate(flat) if free[place] and samples[index][:1] == [token]]
        lengths = [_length(samples[index], flat, free, place) for place in starts]
        if starts:
            best = max(range(len(starts)), key=lambda k: lengths[k])
            found.append(_claimed(free, width, index, 0, starts[best], lengths[best]))
    for piece in found:  # which grows
        first, place = piece.first + piece.length, (piece.row + 1) * width
        length = _length(samples[piece.sample][first:], flat, free, place)
        if piece.end == width and length:
            found.append(_claimed(free, width, piece.sample, first, place, length))
    return sorted(found, key=lambda piece: (piece.row, piece.start))


def _length(wanted: list[int], flat: list[int], free: list[bool], place: int) -> int:
    """The number of tokens from the first one on that are at a place and after it, of no other sample."""
    length = 0
    while (
        length < min(len(wanted), len(flat) - place) and free[place + length] and flat[place + length] == wanted[length]
    ):
        length += 1
    return length


def _claimed(free: list[bool], width: int, sample: int, first: int, place: int, length: int) -> Piece:
    """The piece of a sample at a place, to the end of the row, whose tokens are not free any more."""
    row, start = divmod(place, width)
    length = min(length, width - start)
    free[place : place + length] = [False] * length
    return Piece(sample, first, row, start, length)


def same_batch(one: TrainingBatch, other: TrainingBatch) -> bool:
    """True if two batches hold the same tensors."""
    pairs = [(value, other.values.get(name)) for name, value in one.values.items() if isinstance(value, Tensor)]
    return all(isinstance(b, Tensor) and a.shape == b.shape and torch.equal(a, b) for a, b in pairs)
