"""OP606 same_past_window: the engine gives the outputs of the reference past the sliding window.

    E(x)_t = f(x)_t   for every t >= w,

where w is the window: token w is the first that does not see token 0.
Source: elementary; broken by engines without the window, with another one, or with it in the wrong layers.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import MAX_LENGTH, PortCall, PortLaw, PortModel
from orderproof.records.conventions import named_as_convention


class SamePastWindow(PortLaw):
    """The law of this module."""

    def inapplicable_reason(self, model: PortModel) -> str | None:
        if model.window is None:
            return "it has no sliding window"
        if model.window >= model.at_most(MAX_LENGTH):
            return f"its window of {model.window:,} tokens is longer than the longest text compared"
        return None

    def call(self, model: PortModel) -> PortCall:
        return PortCall("prefill", (model.tokens(model.usual_length),))

    def first_compared(self, model: PortModel, call: PortCall) -> int:
        return model.window or 0


LAW = SamePastWindow(
    code="OP606",
    name="same_past_window",
    statement="An engine gives the outputs of the reference past the sliding window.",
    trait="has the same logits past the window",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    ability="prefill",
    remedy="Hide keys that are window or more tokens before the query, in the layers that have a window. "
    + named_as_convention("window"),
)
