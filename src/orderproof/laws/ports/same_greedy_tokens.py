"""OP609 same_greedy_tokens: the engine generates greedily the tokens that the reference generates.

    argmax E(x y_0 ... y_{k-1}) = argmax f(x y_0 ... y_{k-1})   for every generated token y_k

A step whose two best logits differ by less than rounding decides nothing.
Source: elementary; broken by whatever breaks the logits, and by the loop of the generation itself.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel

GENERATED = 12  # tokens


class SameGreedyTokens(PortLaw):
    """The law of this module."""

    def inapplicable_reason(self, model: PortModel) -> str | None:
        if model.at_most(GENERATED + 2) < GENERATED + 2:
            return f"its position table ends at {model.limit} tokens"
        return None

    def call(self, model: PortModel) -> PortCall:
        prompt = model.at_most(model.usual_length + GENERATED) - GENERATED
        return PortCall("greedy", (model.tokens(prompt),), count=GENERATED)


LAW = SameGreedyTokens(
    code="OP609",
    name="same_greedy_tokens",
    statement="An engine generates greedily the tokens that the reference generates.",
    trait="generates the same tokens greedily",
    expectation={"causal_lm": "holds"},
    ability="greedy",
    remedy="Repair the laws of prefill and decoding first; then generate from the logits of the last token.",
)
