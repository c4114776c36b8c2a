"""OP407 batch_composition: the output of a row does not depend on the number, length or padding of the other rows.

    f(S X) = S f(X) for any selection S of rows, a single row included; and a row that is padded on the right or on the
    left to the length of a longer row has the output of the unpadded row, and the longer row its own.

With padding on the left, position ids start with 0 at the first real token. A model that takes none has to count them
by its mask, or use differences only, if its rows are padded on the left: as the example shows, or, without an example,
if it is causal. It never reads pads on the right, so its mask is for pads on the left. An encoder that counts pads
serves rows padded on the right, and so does the decoder of an encoder-decoder, whose rows start with one token and no
prompt; the report says so and does not fail it. A module that takes ids and no mask is given rows that are padded with
the id of its pads, if that is known.
Source: elementary; broken by padding masks that are applied only to batches of more than one row, by masks and
positions taken from the first row, and by positions that count pads (ndif-team/nnsight#673, huggingface/peft#54).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from orderproof.adapter import ModelAdapter
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_every_token
from orderproof.laws.measured.lengths import affordable_thresholds
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.laws.measured.padded_batch import ROW_AMONG, PaddedBatch, batch_of_lengths, padded_batch
from orderproof.laws.measured.remedies import OF_PADDED_ROWS
from orderproof.laws.mixing_kinds import POSITIONS
from orderproof.records.audit import Remedy

PADS = 3
MIN_ROWS = 2
RIGHT_ONLY = "rows padded on the left give something else: pad them on the right"
COUNT_BY_MASK = Remedy(
    text="Count positions in each row by its mask. If rows are padded on the right only, give an example mask with "
    "pads there.",
    diff="-position_ids = torch.arange(tokens).expand(rows, tokens)\n"
    "+position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)",
)


class BatchComposition(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def inapplicable_reason(self, adapter: ModelAdapter) -> str | None:
        if adapter.batch_size < MIN_ROWS:
            return "it takes one row at a time"
        return adapter.no_output_rows or super().inapplicable_reason(adapter)

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison("a batch of one row", partial(_compare_rows, rows=(0,)))
        yield Comparison("the rows reordered, one repeated", partial(_compare_rows, rows=(1, 0, 1)))
        if "mask" in calls.adapter.supported_inputs and not calls.adapter.has_pooled_output:  # see pooled_padding
            yield Comparison(
                "padded on the right in a batch with a longer row", partial(_compare_padded, left=0, right=PADS)
            )
            yield Comparison(
                "a longer row in a batch with one padded on the right", partial(_compare_longer, left=0, right=PADS)
            )
            yield Comparison("padded on the right in a batch with rows of other lengths", _compare_lengths)
            for pads in _pads_past_thresholds(calls):
                yield Comparison(
                    f"padded on the right in a batch with a row of {calls.default_length + pads} tokens",
                    partial(_compare_padded, left=0, right=pads),
                )
            yield Comparison(
                "padded on the right in a batch of one row", partial(_compare_padded, left=0, right=PADS, alone=True)
            )
            if not calls.adapter.right_padding_only:
                yield from _padded_left(calls.adapter)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_every_token(calls)


def _padded_left(adapter: ModelAdapter) -> Iterator[Comparison]:
    """The comparisons of rows padded on the left: they decide if the rows of users are."""
    decides = "positions" in adapter.supported_inputs or not adapter.has_positions
    decides = decides or "left" in (adapter.padded_sides or adapter.usual_sides)
    for place, alone in (("in a batch with a longer row", False), ("in a batch of one row", True)):
        yield Comparison(
            f"padded on the left {place}", partial(_compare_padded, left=PADS, right=0, alone=alone),
            informational=not decides, note="" if alone else RIGHT_ONLY,
        )  # fmt: skip
    yield Comparison(
        "a longer row in a batch with one padded on the left", partial(_compare_longer, left=PADS, right=0),
        informational=not decides,
    )  # fmt: skip


def _pads_past_thresholds(calls: CachedCalls) -> list[int]:
    """Pads that make the longer row just exceed a threshold; only of the default call, so that each is tried once."""
    longest = calls.adapter.max_positions
    ends = {t.tokens + 1 for t in affordable_thresholds(calls.adapter)} if calls.base is None else set()
    ends = {end if longest is None else min(end, longest) for end in ends}
    return sorted(end - calls.default_length for end in ends if end > calls.default_length + PADS)


def _compare_rows(calls: CachedCalls, *, rows: tuple[int, ...]) -> OutputPair:
    index = torch.tensor(rows)
    output, tokens = calls.default_output, calls.default_tokens
    if len(output) != len(tokens):
        raise UnsupportedCallError(
            f"expected an output of shape [{len(tokens)}, ...], one row per row of the batch, got "
            f"{list(output.shape)}: return the rows along the first axis"
        )
    return output[index], calls.forward(tokens[index])


def _compare_padded(calls: CachedCalls, *, left: int, right: int, alone: bool = False) -> OutputPair:
    return _alone_and_among(calls, padded_batch(calls, left=left, right=right, alone=alone), left)


def _compare_lengths(calls: CachedCalls) -> OutputPair:
    return _alone_and_among(calls, batch_of_lengths(calls, left=False), row=ROW_AMONG)


def _alone_and_among(calls: CachedCalls, padded: PaddedBatch, left: int = 0, row: int = 0) -> OutputPair:
    """The output of a row alone and in a padded batch, without its pads."""
    count = padded.unpadded_row.shape[1]
    expected = calls.default_output[:1] if count == calls.default_length else calls.forward(padded.unpadded_row)
    actual = calls.forward(padded.tokens, **padded.call_arguments)[row : row + 1]
    return expected, actual[:, left : left + count] if actual.dim() == 3 else actual


def _compare_longer(calls: CachedCalls, *, left: int, right: int) -> OutputPair:
    """The second row, which has no pads: the mask of the first must not reach it."""
    padded = padded_batch(calls, left=left, right=right, alone=False)
    return calls.forward(padded.tokens[1:]), calls.forward(padded.tokens, **padded.call_arguments)[1:]


LAW = BatchComposition(
    code="OP407",
    name="batch_composition",
    statement="The output of a row does not depend on the number, length or padding of the other rows.",
    trait="gives a row the same output in every batch",
    expectation={"causal_lm": "holds", "encoder": "holds", "vision": "holds"},
    remedy="Apply the padding mask for any number of rows and in every kind of layer, and compute positions per row.",
    diff="-if attention_mask is not None and len(x) > 1:\n+if attention_mask is not None:",
    remedies_by_mixing={**OF_PADDED_ROWS, POSITIONS: COUNT_BY_MASK},
)
