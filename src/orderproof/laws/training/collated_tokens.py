"""OP710 collated_tokens: each token of each sample is in the batch once, in order, and as what it was.

    batch[row, start + k] = sample[k]   for all k of each sample, and no other tokens but those that are added to all

Position ids restart with each sample, and the attention mask, the labels and the cumulative lengths fit to where it is.
A sample that is too long may be cut at its end: the reason says so. The samples are collated as they are, with an empty
one among them and with one that is twice as long; where a collator refuses these, that is no fault.
Source: elementary; broken by a last token that is dropped, by position ids that a packing collator drops or does not
restart, and by masks that hide tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.collation import Collation, Piece, find_pieces, same_batch
from orderproof.laws.training.training_batch import IGNORED, SEQUENCE_STARTS, TrainingBatch
from orderproof.laws.training.training_law import TermComparison, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

Fault = tuple[str, Tensor, str]  # what is wrong, the tensor of the batch, the remedy

KEEP = "Put all tokens of each sample into the batch, in order, once."
RESTART = "Give each sample of a packed row position ids that start at 0."
BOUNDARIES = "Say where the samples of a packed row begin: position ids that restart, or cumulative lengths."
MASK = "Set the attention mask to 1 at all tokens of samples, and to 0 at pads."
LABELS = "Give each token the label of its sample, or -100."
LENGTHS = "Let the cumulative lengths begin with 0 and end each sample."


class CollatedTokens(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        return None if step.collation else "no collator is given: --collator file.py:name"

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        given = step.collation
        assert given is not None
        batch = given.batch()
        if not same_batch(batch, given.batch()):
            raise UnsupportedCallError("its collator is random: asked twice, it made two batches of the same samples")
        yield _comparison(given, batch, "the samples")
        for name, samples in (("with an empty sample", _with_empty(given)), ("with a long sample", _with_long(given))):
            changed = replace(given, samples=samples)
            try:
                other = changed.batch()
            except Exception:  # noqa: BLE001 - the collator may refuse a sample as these, as it likes
                continue
            yield _comparison(changed, other, f"the samples {name}")


def _comparison(given: Collation, batch: TrainingBatch, description: str) -> TermComparison:
    faults = list(_faults(given, batch))
    control = 1.0 if any(True for _ in _faults(given, _with_swapped_tokens(given, batch))) else 0.0
    if not faults:
        return TermComparison(description + _cut_text(given, batch), 0.0, control)
    text, made, remedy = faults[0]
    return TermComparison(description, 1.0, control, found=text, remedy=remedy, made=made)


def _with_swapped_tokens(given: Collation, batch: TrainingBatch) -> TrainingBatch:
    """The batch with two neighbours that differ swapped in a sample: a fault, if it is looked for."""
    tokens = batch.tokens.clone()
    for piece in sorted(find_pieces(given, tokens), key=lambda piece: -piece.length):
        own = tokens[piece.row, piece.start : piece.end]
        unequal = (own[:-1] != own[1:]).nonzero().flatten()
        if len(unequal):
            k = int(unequal[len(unequal) // 2])
            own[k : k + 2] = own[k : k + 2].flip(0)
            break
    return batch.replaced("tokens", tokens)


def _faults(given: Collation, batch: TrainingBatch) -> Iterator[Fault]:
    pieces = find_pieces(given, batch.tokens)
    yield from _lost(given, batch, pieces)
    yield from _added(batch, pieces)
    yield from _positions(given, batch, pieces)
    yield from _masked(batch, pieces)
    yield from _labels(given, batch, pieces)
    yield from _lengths(given, batch, pieces)


def _lost(given: Collation, batch: TrainingBatch, pieces: list[Piece]) -> Iterator[Fault]:
    width = int(batch.real.any(0).nonzero().max()) + 1
    for index, tokens in enumerate(given.tokens):
        own = sorted((piece for piece in pieces if piece.sample == index), key=lambda piece: piece.first)
        found = sum(piece.length for piece in own)
        is_cut = own and own[-1].end == width
        if found == len(tokens) or is_cut or _is_last_label(batch, tokens, own, found):
            continue
        lost = f"token {found}" if found == len(tokens) - 1 else f"tokens {found} to {len(tokens) - 1}"
        yield f"the batch lacks {lost} of sample {index}", batch.tokens, KEEP


def _is_last_label(batch: TrainingBatch, tokens: list[int], own: list[Piece], found: int) -> bool:
    """True if the last token is only a label, as where a collator has shifted them."""
    if not own or found != len(tokens) - 1 or "labels" not in batch.roles:
        return False
    return int(batch.labels[own[-1].row, own[-1].end - 1]) in (tokens[-1], IGNORED)


def _cut_text(given: Collation, batch: TrainingBatch) -> str:
    kept = [0] * len(given.tokens)
    for piece in find_pieces(given, batch.tokens):
        kept[piece.sample] += piece.length
    cut = [index for index, tokens in enumerate(given.tokens) if kept[index] < len(tokens) - 1]
    return f", of which {len(cut)} are cut" if cut else ""


def _added(batch: TrainingBatch, pieces: list[Piece]) -> Iterator[Fault]:
    """Tokens of no sample, but for the one before and the one after a sample, which are special tokens."""
    free = batch.real.clone()
    for piece in pieces:
        free[piece.row, max(piece.start - 1, 0) : piece.end + 1] = False
    if "mask" in batch.roles and bool(free.any()):
        row, place = free.nonzero()[0].tolist()
        text = f"token {place} of row {row} is of no sample, and the mask shows it"
        yield text, batch.values[batch.roles["mask"]], MASK


def _positions(given: Collation, batch: TrainingBatch, pieces: list[Piece]) -> Iterator[Fault]:
    positions = batch.role("positions")
    packed = len({piece.sample for piece in pieces}) > len({piece.row for piece in pieces})
    stated = [batch.values[name] for name in SEQUENCE_STARTS if isinstance(batch.values.get(name), Tensor)]
    if positions is None:
        apart = bool((batch.documents > 0).any()) or stated
        if packed and not apart:
            yield "a row has several samples, and nothing in the batch says where they begin", batch.tokens, BOUNDARIES
        return
    for piece in pieces:
        own, expected = positions[piece.row, piece.start : piece.end].tolist(), _expected_positions(given, piece)
        if own == list(range(1, piece.length + 1)) and piece.start:  # after a special token
            continue
        if own not in (expected, list(range(piece.length))):
            k = next(k for k in range(piece.length) if own[k] != expected[k])
            text = f"the position id of token {k} of sample {piece.sample} is {own[k]}, expected {expected[k]}"
            yield text, positions, RESTART


def _expected_positions(given: Collation, piece: Piece) -> list[int]:
    return given.positions[piece.sample][piece.first : piece.first + piece.length]


def _shown(values: Any) -> str:
    first = ", ".join(map(str, list(values)[:3]))
    return f"{first} ..." if len(values) > 3 else first


def _masked(batch: TrainingBatch, pieces: list[Piece]) -> Iterator[Fault]:
    mask = batch.role("mask")
    for piece in pieces if mask is not None else ():
        assert mask is not None
        if not bool((mask[piece.row, piece.start : piece.end] > 0).all()):
            yield f"the attention mask hides tokens of sample {piece.sample}", mask, MASK


def _labels(given: Collation, batch: TrainingBatch, pieces: list[Piece]) -> Iterator[Fault]:
    if "labels" not in batch.roles:
        return
    for piece in pieces:
        labels = given.labels[piece.sample]
        if labels is None or len(labels) != len(given.tokens[piece.sample]):
            continue
        own = batch.labels[piece.row, piece.start : piece.end]
        wanted = torch.tensor(labels[piece.first : piece.first + piece.length])
        ahead = torch.tensor([*labels[piece.first + 1 : piece.first + piece.length + 1], IGNORED])[: len(own)]
        if all(bool(((own != x) & (own != IGNORED)).any()) for x in (wanted, ahead)):
            yield f"the labels of sample {piece.sample} are others in the batch", batch.labels, LABELS


def _lengths(given: Collation, batch: TrainingBatch, pieces: list[Piece]) -> Iterator[Fault]:
    values: Mapping[Any, Any] = batch.values
    ends = {piece.end for piece in pieces}
    for piece in pieces:
        ends |= {piece.start + k for k, position in enumerate(_expected_positions(given, piece)) if position == 0}
    for name in SEQUENCE_STARTS:
        stated = values.get(name)
        if not isinstance(stated, Tensor) or len(batch.tokens) != 1 or stated.dim() != 1:
            continue
        if not set(stated.tolist()) <= ends | {0, batch.tokens.shape[1]} or not ends <= set(stated.tolist()):
            yield f"{name} has {_shown(stated.tolist())}, which are not the ends of the samples", stated, LENGTHS


def _with_empty(given: Collation) -> list[Any]:
    samples = list(given.samples)
    return [*samples[:1], _of_parts(samples[0], lambda part: part[:0]), *samples[1:]]


def _with_long(given: Collation) -> list[Any]:
    samples = list(given.samples)
    longest = max(range(len(samples)), key=lambda index: len(given.tokens[index]))
    return [*samples, _of_parts(samples[longest], _twice)]


def _twice(part: Any) -> Any:
    """A part and the same backwards."""
    return torch.cat([part, part.flip(0)]) if isinstance(part, Tensor) else [*part, *part[::-1]]


def _of_parts(sample: Any, change: Any) -> Any:
    """A sample whose lists and vectors are changed."""
    if isinstance(sample, Mapping):
        return {
            name: _of_parts(value, change) if isinstance(value, (list, Tensor)) else value
            for name, value in sample.items()
        }
    if isinstance(sample, tuple):
        return tuple(_of_parts(part, change) for part in sample)
    return change(sample)


LAW = CollatedTokens(
    code="OP710",
    name="collated_tokens",
    statement="Each token of each sample is in the batch once and in order, and its position, mask and label fit.",
    trait="has a collator that keeps all tokens of its samples in order",
    expectation={"training step": "holds"},
    may_lack=True,
    assumption="measured on the given samples, with an empty one and a long one",
    remedy=KEEP,
)
