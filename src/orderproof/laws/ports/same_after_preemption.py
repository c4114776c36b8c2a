"""OP612 same_after_preemption: rows that do not fit into the cache together have the logits of the reference.

    E(x_r; preempted at some token, and computed again)_t = f(x_r)_t   for every row r

The rows start together, and their caches grow with each generated token until there is no block left: the engine puts
a row off, drops its cache, and computes it again later. The generated tokens are chosen, so that the reference reads
the same rows. An engine that puts no row off decides nothing.
Source: elementary; broken by positions that start again, and by generated tokens that are not computed again.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel
from orderproof.laws.ports.same_shared_prefix import BLOCK

ROWS = 3
PROMPT = 24  # [tokens]; all rows together fit into a block each


class SameAfterPreemption(PortLaw):
    """The law of this module."""

    def inapplicable_reason(self, model: PortModel) -> str | None:
        if model.at_most(2 * BLOCK) < 2 * BLOCK:
            return f"its table of positions is shorter than {2 * BLOCK} tokens"
        return None

    def call(self, model: PortModel) -> PortCall:
        rows = tuple(model.tokens(2 * BLOCK - 8, row) for row in range(ROWS))
        return PortCall("preemption", rows, sizes=(PROMPT,))

    def first_compared(self, model: PortModel, call: PortCall) -> int:
        del model
        return call.sizes[0] - 1  # the token after the prompt is scored by its last token


LAW = SameAfterPreemption(
    code="OP612",
    name="same_after_preemption",
    statement="Rows that do not fit into the cache of an engine together have the logits of the reference.",
    trait="has the same logits for a row that was put off and computed again",
    expectation={"causal_lm": "holds"},
    ability="preemption",
    remedy="Compute a row that was put off from its first token on, with the tokens that it has generated.",
)
