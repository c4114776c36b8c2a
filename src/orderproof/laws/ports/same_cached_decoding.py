"""OP603 same_cached_decoding: decoding with the engine's cache gives the logits of the reference.

    E(x_t; C(x_0 ... x_{t-1})) = f(x_t; C'(x_0 ... x_{t-1}))

for the tokens after a short prefill, where C is the cache of the engine and C' that of the reference. The text is
longer than the window, so that a ring buffer turns over.
Source: elementary; broken by positions that do not count on from the cache, and by caches that drop the wrong token.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel


class SameCachedDecoding(PortLaw):
    """The law of this module."""

    def call(self, model: PortModel) -> PortCall:
        length, first = model.usual_length, min(model.short_length, 5)
        return PortCall("chunks", (model.tokens(length),), sizes=(first, *[1] * (length - first)))


LAW = SameCachedDecoding(
    code="OP603",
    name="same_cached_decoding",
    statement="Decoding with an engine's cache gives the logits of the reference.",
    trait="has the same logits when it decodes with a cache",
    expectation={"causal_lm": "holds"},
    ability="chunks",
    remedy="Count positions on from the number of tokens that the cache has seen.",
)
