"""OP608 same_far_positions: the engine gives the outputs of the reference at far positions.

    E(x)_t = f(x)_t   for the last tokens t of a long text

A text of 1024 tokens, or a shorter one where the rounding of the reference hides every difference in it.
An angle p * frequency that is rounded to b bits after the point has an error that grows with p.
Source: elementary; broken by positions or angles in a half precision.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel

FAR = 1024  # [tokens]
LAST_TOKENS = 64


class SameFarPositions(PortLaw):
    """The law of this module."""

    def call(self, model: PortModel) -> PortCall:
        longest = min(FAR, model.at_most(FAR + 1) - 1)  # an engine may generate a token, which has a position too
        return PortCall("prefill", (model.tokens(longest),))

    def first_compared(self, model: PortModel, call: PortCall) -> int:
        del model
        return max(0, call.length - LAST_TOKENS)

    def shorter_call(self, call: PortCall) -> PortCall | None:
        length = call.length // 2
        return PortCall("prefill", (call.rows[0][:length],)) if length > 2 * LAST_TOKENS else None


LAW = SameFarPositions(
    code="OP608",
    name="same_far_positions",
    statement="An engine gives the outputs of the reference at far positions.",
    trait="has the same logits at far positions",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    ability="prefill",
    may_shorten=True,
    remedy="Compute the angles of positions in float32.",
)
