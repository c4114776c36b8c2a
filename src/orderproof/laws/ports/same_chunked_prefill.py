"""OP604 same_chunked_prefill: a prompt that the engine reads in chunks gives the logits of the reference.

    E(x_a ... x_b; C(x_0 ... x_{a-1})) = f(x_a ... x_b; C'(x_0 ... x_{a-1}))   for every chunk [a, b]

The chunks differ in length, and one of them is longer than the window.
Source: elementary; broken by masks that are aligned to the wrong corner, and by ring buffers shorter than a chunk.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel


class SameChunkedPrefill(PortLaw):
    """The law of this module."""

    def call(self, model: PortModel) -> PortCall:
        length = model.usual_length
        first, second = max(2, length // 5), max(1, length // 2)
        sizes = (first, second, length - first - second)
        return PortCall("chunks", (model.tokens(length),), sizes=tuple(size for size in sizes if size > 0))


LAW = SameChunkedPrefill(
    code="OP604",
    name="same_chunked_prefill",
    statement="A prompt that an engine reads in chunks gives the logits of the reference.",
    trait="has the same logits when it reads a prompt in chunks",
    expectation={"causal_lm": "holds"},
    ability="chunks",
    remedy="Align the mask of a chunk to the end of the cache, and keep the window before each of its tokens.",
)
