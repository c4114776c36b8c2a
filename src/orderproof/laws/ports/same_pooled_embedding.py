"""OP613 same_pooled_embedding: embeddings of whole texts in a mixed batch are those that the checkpoint states.

    E([x, pads], [y])_x = pool(f(x))

where pool is the mean of the embeddings of the tokens, or the first or the last of them, divided by its length if the
checkpoint states that (`modules.json`, as sentence-transformers writes it). Short texts are next to long ones.
Source: elementary; broken by a mean over pads, by another pooling than the one stated, and by a length that is not 1.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel


class SamePooledEmbedding(PortLaw):
    """The law of this module."""

    def inapplicable_reason(self, model: PortModel) -> str | None:
        if model.kind != "encoder":
            return "a language model is compared by its logits"
        return None if model.pooling else "the checkpoint states no pooling in modules.json"

    def call(self, model: PortModel) -> PortCall:
        longest = model.usual_length
        lengths = (max(2, longest // 4), longest, max(2, longest // 2))
        return PortCall("pooled", tuple(model.tokens(length, row) for row, length in enumerate(lengths)))


LAW = SamePooledEmbedding(
    code="OP613",
    name="same_pooled_embedding",
    statement="The embeddings of texts in a batch of an engine are those of the reference for each text alone.",
    trait="has the same embedding of a whole text",
    expectation={"encoder": "holds"},
    ability="pooled",
    remedy="Pool the real tokens of each text, as modules.json of the checkpoint states.",
)
