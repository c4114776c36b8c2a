"""OP407 batch_mates: a row's answer does not depend on the number, the length or the padding of the other rows.

    f(S X) = S f(X) for any choice S of rows, one row alone included; and a row beside a longer one, padded on
    the right or on the left up to its length, answers as it does alone.

On the left, position ids go with the padding (0 at the first real token): that a model without them counts pads is
its contract and no defect. A recurrence without positions has none to count, and must not read pads either.
Source: elementary; broken by padding masks that are applied only to batches of more than one, and by positions
taken from the first row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, encoder
from orderproof.driver import Answer, Driver
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial
from orderproof.laws.measured.padded_rows import between_pads

PADS = 3
ROWS = 2


class Hasty(TransformerDriver):
    """The same, with a padding mask that is used only where there are several rows."""

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **given: Any) -> Answer:
        return super().call(tokens, mask=mask if len(tokens) > 1 else None, **given)


class BatchMates(MeasuredLaw):
    """See the module's text."""

    def not_asked(self, driver: Driver) -> str | None:
        return "it takes one row at a time" if driver.rows < ROWS else super().not_asked(driver)

    def trials(self, bench: Bench) -> Iterator[Trial]:
        yield Trial("one row alone", partial(_chosen, rows=(0,)))
        yield Trial("the rows in another order, one twice", partial(_chosen, rows=(1, 0, 1)))
        if "mask" in bench.driver.takes:
            yield Trial("beside a longer row, padded on the right", partial(_padded, left=0, right=PADS))
            yield Trial("alone, padded on the right", partial(_padded, left=0, right=PADS, alone=True))
            if "positions" in bench.driver.takes or not bench.driver.placed:
                yield Trial("beside a longer row, padded on the left", partial(_padded, left=PADS, right=0))
                yield Trial("alone, padded on the left", partial(_padded, left=PADS, right=0, alone=True))

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _chosen(bench: Bench, *, rows: tuple[int, ...]) -> Sides:
    index = torch.tensor(rows)
    return bench.whole[index], bench.forward(bench.tokens[index])


def _padded(bench: Bench, *, left: int, right: int, alone: bool = False) -> Sides:
    padded = between_pads(bench, left=left, right=right, alone=alone)
    count = padded.row.shape[1]
    expected = bench.whole[:1] if count == bench.length else bench.forward(padded.row)
    found = bench.forward(padded.tokens, **padded.given)[:1]
    return expected, found[:, left : left + count] if found.dim() == 3 else found


LAW = BatchMates(
    code="OP407",
    name="batch_mates",
    statement="A row's answer does not depend on the number, the length or the padding of the other rows.",
    expectation={"causal_lm": "holds", "encoder": "holds", "vision": "holds"},
    fix="Apply the padding mask whatever the number of rows, in every kind of layer, and take positions row by row.",
    diff="-if attention_mask is not None and len(x) > 1:\n+if attention_mask is not None:",
    honest=encoder,
    faulty=lambda: encoder(of=Hasty),
)
