"""OP206 packed_alone: a packed document gives what it gives alone.

    f(A B)_t = f(B)_t    for every token t of B, where f is given documents A and B, and position ids from zero in each

Either document may be the first, and there may be three. The document alone keeps its number, after or before empty
documents, or is the only one: a module may take either, so the nearer one is compared.
Source: elementary; the assumption of training and serving on packed documents. Broken by position ids that go on over
documents, by a state that is carried over, by a table that is read from its start for every document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from orderproof.batch_layout import second_document_start
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_every_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.recording.execution import relative_difference

ORDINALS = ("first", "second", "third")
COUNTS = ("", "one", "two", "three")


class PackedAlone(MeasuredLaw):
    """The law of this module."""

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        start, tokens = second_document_start(calls.default_length), calls.default_length
        layouts: list[tuple[int, ...]] = [(start, tokens - start)]
        if start > 1:
            layouts.append((1, start - 1, tokens - start))
        for lengths in layouts:
            for place in reversed(range(len(lengths))):
                yield Comparison(
                    f"the {ORDINALS[place]} of {COUNTS[len(lengths)]} packed documents, and alone",
                    partial(_compare, lengths=lengths, place=place),
                )

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_every_token(calls)


def _compare(calls: CachedCalls, *, lengths: Sequence[int], place: int) -> OutputPair:
    """The outputs of one document alone, and among the others."""
    tokens, begin, end = calls.default_tokens, sum(lengths[:place]), sum(lengths[: place + 1])
    packed = _of_document(calls.uncached_call(tokens, documents=tuple(lengths), keep=False).output, lengths, place)
    alone = _alone(calls, tokens[:, begin:end], lengths, place)
    same = [x for x in alone if x.shape == packed.shape]
    return (min(same, key=lambda x: relative_difference(x, packed)) if same else alone[0]), packed


def _alone(calls: CachedCalls, own: Tensor, lengths: Sequence[int], place: int) -> list[Tensor]:
    """The outputs of a document in a call of its own: with its number among empty documents, and as the only one.

    Raises what the last call raises, if none succeeds.
    """
    numbered = tuple(length if k == place else 0 for k, length in enumerate(lengths))
    found: list[Tensor] = []
    failure: Exception = UnsupportedCallError("one of the documents alone gives NaN or infinity")
    for given, at in ((numbered, place), (tuple(own.shape[1:2]), 0)):
        try:
            output = _of_document(calls.uncached_call(own, documents=given, keep=False).output, given, at)
        except Exception as error:  # noqa: BLE001 - third-party code: it may refuse empty documents, or a single one
            failure = error
            continue
        if bool(torch.isfinite(output).all()):
            found.append(output)
    if not found:
        raise failure
    return found


def _of_document(output: Tensor, lengths: Sequence[int], place: int) -> Tensor:
    """The outputs of one document: of its tokens [row, token, ...], or its own entry [document, ...]."""
    begin = sum(lengths[:place])
    if output.dim() > 1 and output.shape[1] == sum(lengths):
        return output[:, begin : begin + lengths[place]]
    if output.dim() > 1 and output.shape[:2] == (1, len(lengths)):
        return output[:, place]
    raise UnsupportedCallError(
        f"expected an output for each of {sum(lengths)} tokens or {len(lengths)} documents; got {list(output.shape)}"
    )


LAW = PackedAlone(
    code="OP206",
    name="packed_alone",
    statement="A packed document gives what it gives alone.",
    trait="gives a packed document what it gives alone",
    kind="property",
    expectation={},
    expected_of_documents=True,
    remedy="Restart everything that runs along tokens where a document begins: position ids, tables that they index, "
    "states of recurrences, and masks.",
    diff="-position_ids = torch.arange(tokens)\n+position_ids = torch.arange(tokens) - boundaries[document]",
    required_inputs=frozenset({"documents"}),
)
