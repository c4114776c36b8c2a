"""OP605 same_padded_batch: rows of different lengths in one batch give the logits of the reference for each row alone.

    E([pads, x], [y])_x = f(x)

The engine pads as it does by itself: on the left where it takes left-padded rows. The reference reads each row without
pads.
Source: elementary; broken by position ids that count pads, and by masks that do not hide them.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel


class SamePaddedBatch(PortLaw):
    """The law of this module."""

    def call(self, model: PortModel) -> PortCall:
        longest = model.usual_length
        lengths = (longest, max(2, longest // 2), max(2, longest // 4))
        return PortCall("batch", tuple(model.tokens(length, row) for row, length in enumerate(lengths)))


LAW = SamePaddedBatch(
    code="OP605",
    name="same_padded_batch",
    statement="Rows of different lengths in one batch of an engine give the outputs of each row alone.",
    trait="has the same logits for the rows of a padded batch",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    ability="batch",
    remedy="Hide pads in the mask, and count positions from the first real token of each row.",
)
