"""OP409 pooled_padding: an output without tokens is the same with and without pads, whatever they hold.

    f(x pads) = f(x other pads) = f(x)     with pads on the right, or with pads on the left

One side suffices: the first token of an encoder is right for pads on the right, the last token of a decoder for pads
on the left. If the example mask has pads, it must be the side that these are on. The report names a side that is not
served. But on each side an output that reads no pad has to read every real token that it reads without pads, or none:
at place `mask.sum() - 1` pads on the left hide the last real tokens, and nothing else shows it. One side suffices
here, too, where pads have an id and no mask. With pads on the left, position ids start with 0 at the first real token;
a model that takes none may count pads, if it reads those on the right.
Source: elementary; broken by a mean over pads, a sum that is divided by the number of all tokens, and by places that
are counted from the wrong end. A pad that is set to 0 wins a maximum only over negative numbers, so short rows are
compared too; and rows of several lengths, which a model may sort.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.batch_layout import Side
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_every_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.laws.measured.padded_batch import ROW_AMONG, batch_of_lengths, mask_arguments, pad_tokens, padded_batch
from orderproof.laws.proved.proved_law import evenly_spaced
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Expectation
from orderproof.tolerances import FLOAT32_TOLERANCE, ZERO_TOLERANCE

PADS = 3
MAX_TOKENS = 8  # of a row, that are replaced one by one
FEW, FEW_ROWS = 2, 8  # real tokens and rows of a short batch: a pad that is 0 wins a maximum over few more often

SIDES: tuple[Side, ...] = ("right", "left")


@dataclass(frozen=True)
class _Output:
    """One output without tokens in calls of a model."""

    name: str

    def of(self, calls: CachedCalls) -> CachedCalls:
        """The calls with this output."""

        def made() -> CachedCalls:
            return calls.for_adapter(dict(calls.adapter.pooled_outputs())[self.name])

        return calls.memoize(f"output {self.name}", made)

    def padded(self, calls: CachedCalls, side: Side, *, filler: int = 0, token: int | None = None) -> Tensor:
        """The output of a row with pads; `filler` other than 0 replaces their content, `token` a real token."""
        own = self.of(calls)
        left, right = (PADS, 0) if side == "left" else (0, PADS)
        batch = padded_batch(own, left=left, right=right, alone=False)
        tokens = batch.tokens.clone()
        if filler:
            tokens[~batch.mask] = own.sample_tokens(tokens.shape[1], rows=len(tokens), other=filler)[~batch.mask]
        if token is not None:
            tokens[0, left + token] = _others(own, batch.unpadded_row.shape[1])[0, token]
        return own.forward(tokens, **batch.call_arguments)[:1]

    def unpadded(self, calls: CachedCalls, token: int | None = None) -> Tensor:
        """The output of the row without pads."""
        own = self.of(calls)
        row = padded_batch(own, left=PADS, alone=True).unpadded_row.clone()
        if token is not None:
            row[0, token] = _others(own, row.shape[1])[0, token]
        return own.forward(row)

    def content(self, calls: CachedCalls, side: Side) -> OutputPair:
        """The outputs with pads and with other pads."""
        return self.padded(calls, side), self.padded(calls, side, filler=5)

    def amount(self, calls: CachedCalls, side: Side) -> OutputPair:
        """The outputs without pads and with pads."""
        return self.unpadded(calls), self.padded(calls, side)

    def lengths(self, calls: CachedCalls, side: Side) -> OutputPair:
        """The outputs of a row without pads and among rows of other lengths."""
        own = self.of(calls)
        batch = batch_of_lengths(own, left=side == "left")
        among = own.forward(batch.tokens, **batch.call_arguments)[ROW_AMONG : ROW_AMONG + 1]
        return own.forward(batch.unpadded_row), among

    def few(self, calls: CachedCalls, side: Side) -> OutputPair:
        """The outputs of short rows without pads and with pads."""
        own = self.of(calls)
        rows = own.sample_tokens(FEW, rows=FEW_ROWS, other=7)
        mask = torch.arange(FEW + PADS).expand(FEW_ROWS, -1) < FEW
        tokens = torch.cat([rows, pad_tokens(own, PADS, rows=FEW_ROWS)], 1)
        if side == "left":
            tokens, mask = tokens.roll(PADS, 1), mask.roll(PADS, 1)
        return own.forward(rows), own.forward(tokens, **mask_arguments(own, mask))

    def reading(self, calls: CachedCalls, side: Side, token: int) -> OutputPair:
        """The outputs with pads before and after a real token is replaced."""
        return self.padded(calls, side), self.padded(calls, side, token=token)


def _others(calls: CachedCalls, tokens: int) -> Tensor:
    return calls.sample_tokens(tokens, rows=1, other=6)


class PooledPadding(MeasuredLaw):
    """The law of this module."""

    def inapplicable_reason(self, adapter: ModelAdapter) -> str | None:
        if not any(True for _ in adapter.pooled_outputs()):
            return "it has no output without tokens"
        return super().inapplicable_reason(adapter)

    def expected_of(self, adapter: ModelAdapter, model_kind: str) -> Expectation:
        """Nothing is expected of a model without such an output: the law is not left out."""
        return self.expected(model_kind) if self.inapplicable_reason(adapter) is None else "any"

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        for name, _ in calls.adapter.pooled_outputs():
            yield from _comparisons(calls, _Output(name))

    def control(self, calls: CachedCalls) -> OutputPair:
        name, _ = next(iter(calls.adapter.pooled_outputs()))
        return replace_every_token(_Output(name).of(calls))


def _comparisons(calls: CachedCalls, output: _Output) -> Iterator[Comparison]:
    """The comparisons of the side that an output serves, of both sides if it serves none; and what it reads there."""
    of = f" ({output.name})" if output.name else ""
    sides = [side for side in SIDES if _can_be_called(calls, output, side)]
    same = {
        (what, side): _agrees(getattr(output, what)(calls, side)) for what in ("content", "amount") for side in sides
    }
    if _may_count_pads(calls, output, same):
        same["amount", "left"] = True
    served = [side for side in sides if same["content", side] and same["amount", side]]
    needed = calls.adapter.padded_sides or served
    by_id = calls.adapter.marks_pads_by_id  # who pads rows chooses the side
    kinds = {
        "content": "other pads", "amount": "no pads", "few": f"no pads in rows of {FEW} tokens",
        "lengths": "no pads in a batch with rows of other lengths",
    }  # fmt: skip
    for side in sides:
        for what, words in kinds.items():
            skipped = what != "content" and side == "left" and _may_count_pads(calls, output, same)
            if not skipped and (what != "few" or calls.base is None):
                yield Comparison(
                    f"pads on the {side} against {words}{of}", partial(_compare, output=output, what=what, side=side),
                    informational=bool(needed) and side not in needed,
                )  # fmt: skip
        lost = _lost_token(calls, output, side) if same["content", side] else None
        if lost is not None:
            yield Comparison(
                f"with {PADS} pads on the {side}, real token {lost} must change the output as without pads{of}",
                partial(_compare_reading, output=output, side=side, token=lost), expects_difference=True,
                informational=side not in (calls.adapter.padded_sides or (served if by_id else SIDES)),
            )  # fmt: skip


def _may_count_pads(calls: CachedCalls, output: _Output, same: dict[tuple[str, Side], bool]) -> bool:
    """True if pads on the left shift positions that cannot be given, and the output is not made for the right."""
    adapter = output.of(calls).adapter
    shifts = adapter.has_positions and "positions" not in adapter.supported_inputs
    by_calls = ("content", "left") in same and not same.get(("content", "right"), False)
    return shifts and "left" not in adapter.padded_sides and by_calls


def _can_be_called(calls: CachedCalls, output: _Output, side: Side) -> bool:
    try:
        output.padded(calls, side)
    except UnsupportedCallError:
        return False
    return True


def _agrees(pair: OutputPair) -> bool:
    return relative_difference(*pair) <= FLOAT32_TOLERANCE


def _lost_token(calls: CachedCalls, output: _Output, side: Side) -> int | None:
    """A real token that the output reads without pads and not with them, although it reads others; None without one."""
    usual, padded = output.unpadded(calls), output.padded(calls, side)
    count = padded_batch(output.of(calls), left=PADS, alone=True).unpadded_row.shape[1]
    lost, reads = [], False
    for token in evenly_spaced(count, MAX_TOKENS):
        unread = relative_difference(padded, output.padded(calls, side, token=token)) <= ZERO_TOLERANCE
        reads = reads or not unread
        if unread and relative_difference(usual, output.unpadded(calls, token)) > FLOAT32_TOLERANCE:
            lost.append(token)
    return lost[-1] if lost and reads else None


def _compare(calls: CachedCalls, *, output: _Output, what: str, side: Side) -> OutputPair:
    found: OutputPair = getattr(output, what)(calls, side)
    return found


def _compare_reading(calls: CachedCalls, *, output: _Output, side: Side, token: int) -> OutputPair:
    return output.reading(calls, side, token)


LAW = PooledPadding(
    code="OP409",
    name="pooled_padding",
    statement="An output without tokens is the same with and without pads, whatever they hold, on one side at least.",
    trait="pools real tokens only",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Pool with the mask: sum over real tokens and divide by their number, or find the last real token by its "
    "place.",
    diff="-last = attention_mask.sum(1) - 1\n+last = (torch.arange(tokens) * attention_mask).argmax(1)",
    required_inputs=frozenset({"mask"}),
    sequence_part="pads",
)
