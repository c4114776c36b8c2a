"""OP607 same_past_context: the engine gives the outputs of the reference past the trained context length.

    E(x)_t = f(x)_t   for every t of a text longer than the trained context

A rope scaling that depends on the length (dynamic, longrope) changes every token of such a text, the first ones too.
Source: elementary; broken by a scaling that is not read, or with other factors.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import MAX_LENGTH, PAST_THRESHOLD, PortCall, PortLaw, PortModel


class SamePastContext(PortLaw):
    """The law of this module."""

    def inapplicable_reason(self, model: PortModel) -> str | None:
        if model.context is None:
            return "its configuration states no context length"
        if model.limit is not None and model.limit <= model.context:
            return f"its position table ends at {model.limit:,} tokens"
        if model.context >= MAX_LENGTH:
            return f"its context of {model.context:,} tokens is longer than the longest text compared"
        return None

    def call(self, model: PortModel) -> PortCall:
        return PortCall("prefill", (model.tokens((model.context or 0) + PAST_THRESHOLD),))


LAW = SamePastContext(
    code="OP607",
    name="same_past_context",
    statement="An engine gives the outputs of the reference past the trained context length.",
    trait="has the same logits past the trained context",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    ability="prefill",
    remedy="Read the rope scaling from config.json, with every factor that it states.",
)
