"""OP202 padding: pad tokens replaced by anything, and the outputs at the real tokens are unchanged.

    X_s = X'_s for every slot s that the attention mask calls real  implies  f(X)_s = f(X')_s there.

Asked with padding on both sides: every other row has its pads on the left, the rest on the right; a single row
has them at both ends. The mask is part of the call, so its values may be used. What the pads' own outputs are is
nobody's concern, and neither is an output without tokens, such as a pooled one: which tokens it should read
depends on the side of the padding.
Source: elementary; what batching relies on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from orderproof.laws.replacement import ReplacementLaw, Slots
from orderproof.record import Remedy
from orderproof.slots import pad_slots


class Honest(nn.Module):
    """A self-attention layer that hides pad tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        scores = query @ key.transpose(1, 2)
        if attention_mask is not None:
            scores = self.hide(scores, attention_mask == 0)
        return torch.matmul(torch.softmax(scores, -1), value)

    def hide(self, scores: Tensor, pad: Tensor) -> Tensor:
        """No token looks at a pad."""
        return scores.masked_fill(pad[:, None, :], float("-inf"))


class Faulty(Honest):
    """The same with the mask on the queries: pads do not look, and are looked at."""

    def hide(self, scores: Tensor, pad: Tensor) -> Tensor:
        return scores.masked_fill(pad[:, :, None], -1e30)


@dataclass(frozen=True)
class Padding(ReplacementLaw):
    """See the module's text."""

    def replaced(self, rows: int, tokens: int) -> Slots:
        found: Slots = pad_slots(rows, tokens).numpy()
        return found

    def asked(self, rows: int, tokens: int) -> Slots:
        return ~self.replaced(rows, tokens)

    def told(self, tokens: int) -> str:
        return "replace the pad tokens"


LAW = Padding(
    code="OP202",
    name="padding",
    statement="Pad tokens, left and right, replaced by anything: outputs at the real tokens unchanged.",
    expectation={"encoder": "holds", "causal_lm": "holds"},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "holds": Remedy(
            text="Hide pads as keys in attention, and set them to zero before what mixes tokens otherwise: "
            "a convolution, a recurrence, a statistic.",
            diff="-scaled_dot_product_attention(q, k, v)\n"
            "+scaled_dot_product_attention(q, k, v, attn_mask=attention_mask[:, None, None, :].bool())",
        )
    },
    settings=("padded",),
)
