"""OP610 same_shared_prefix: a prompt that begins as an earlier one gives the logits of the reference.

    E(p, y; cache of (p, x))_y = f(p, y)

The beginning p is one and a half blocks of a paged cache, so that an engine that keeps whole blocks reuses one of them
and computes a half. Only the tokens after p are compared.
Source: elementary; broken by blocks that are found by their tokens alone, and by positions that start again after p.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel

BLOCK = 32  # [tokens] of a paged cache
AFTER = 12  # [tokens] after the shared beginning


class SameSharedPrefix(PortLaw):
    """The law of this module."""

    def inapplicable_reason(self, model: PortModel) -> str | None:
        if model.at_most(BLOCK + AFTER) < BLOCK + AFTER:
            return f"its table of positions is shorter than {BLOCK + AFTER} tokens"
        return None

    def call(self, model: PortModel) -> PortCall:
        length = model.at_most(BLOCK + BLOCK // 2 + AFTER)
        shared = model.tokens(length - AFTER)
        return PortCall("prefix", tuple((*shared, *model.tokens(AFTER, row)) for row in (1, 2)))

    def first_compared(self, model: PortModel, call: PortCall) -> int:
        del model
        return call.length - AFTER


LAW = SameSharedPrefix(
    code="OP610",
    name="same_shared_prefix",
    statement="A prompt that begins as an earlier one gives the logits of the reference.",
    trait="has the same logits for a prompt that begins as an earlier one",
    expectation={"causal_lm": "holds"},
    ability="prefix",
    remedy="Find a cached block by all tokens before it, and count positions on from the last one that is reused.",
)
