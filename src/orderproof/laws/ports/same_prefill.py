"""OP602 same_prefill: the engine gives the outputs of the reference for every token of a short prompt.

    E(x)_t = f(x)_t   for every t,

where f is the reference, E the engine, and x is no longer than the smallest window or context length, so that neither
acts. Token 0 attends to itself alone: a difference there is not one of order.
Source: elementary; broken by another rotary base or layout, a partial rotation, a scale or a constant.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel


class SamePrefill(PortLaw):
    """The law of this module."""

    def call(self, model: PortModel) -> PortCall:
        return PortCall("prefill", (model.tokens(model.short_length),))


LAW = SamePrefill(
    code="OP602",
    name="same_prefill",
    statement="An engine gives the outputs of the reference for every token of a short prompt.",
    trait="has the same logits for a short prompt",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    ability="prefill",
    remedy="Read the named setting from config.json, under the name that transformers writes.",
)
