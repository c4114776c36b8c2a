"""OP202 padding: the outputs at real tokens are independent of the pad tokens.

    X_s = X'_s for every slot s that the attention mask marks as real  implies  f(X)_s = f(X')_s there.

Both sides are padded: every other row on the left, the rest on the right; a single row at both ends. Where no theorem
covers every mask, pads at other places are compared too. The mask is part of the call, so its values may be used.
Outputs at pads are not compared. An output without tokens, such as a pooled one, is compared for each row with a real
token; it has to ignore pads on one side at least, since a first or a last token is right for one side of the padding
(pooled_padding compares it with the output of the row without pads).
Source: elementary; the assumption of batching.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from orderproof.batch_layout import ONE_SIDE, PAD_LAYOUTS, PadLayout, padding_slots
from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Shape
from orderproof.laws.mixing_kinds import (
    ATTENTION,
    CHOICE,
    CONVOLUTION,
    OTHER,
    POOLING,
    RECURRENCE,
    RUNNING_SUM,
    STATISTIC,
)
from orderproof.laws.proved.proved_law import TokenDim
from orderproof.laws.proved.replacement_law import ReplacementLaw, SlotMask
from orderproof.logic.terms import at_most, less
from orderproof.records.audit import Remedy
from orderproof.theorems.statement import MASKS_IN_WORDS, REAL_TOKEN, REAL_TOKENS, TOKENS, Statement


@dataclass(frozen=True, kw_only=True)
class PaddingLaw(ReplacementLaw):
    """The law of this module."""

    can_replace_with_pad = True
    layout: PadLayout = "padded"

    def in_call_mode(self, call_mode: str) -> PaddingLaw:
        return replace(self, layout=next((layout for layout in PAD_LAYOUTS if layout == call_mode), self.layout))

    def replaced_slots(self, rows: int, tokens: int) -> SlotMask:
        found: SlotMask = padding_slots(rows, tokens, layout=self.layout).numpy()
        return found

    def unchanged_slots(self, rows: int, tokens: int) -> SlotMask:
        return ~self.replaced_slots(rows, tokens)

    def unchanged_rows(self, unchanged: SlotMask) -> SlotMask:
        with_real_token: SlotMask = np.logical_or.reduce(unchanged, axis=1)
        return with_real_token

    def inapplicable_reason(self, dims: tuple[TokenDim, ...]) -> str | None:
        return None

    def max_dependence(self, shape: Shape, tokens: int, rows: int) -> DependenceArray | None:
        if shape[:1] != (rows,) or tokens in shape:
            return super().max_dependence(shape, tokens, rows)
        return np.full((1,) * len(shape), NEVER)  # what is left of all tokens of a row

    def one_call_mode_suffices(self, dims: tuple[TokenDim, ...]) -> bool:
        return not dims

    def open_statement(self, shared: frozenset[str]) -> Statement | None:
        if len(shared) != 1 or not shared <= REAL_TOKENS.keys():
            return None
        (mask,) = shared
        is_real, inside = REAL_TOKENS[mask], (at_most(0, REAL_TOKEN), less(REAL_TOKEN, TOKENS))
        return Statement(
            is_real, lambda row, token: is_real(row, token) & is_real(row, REAL_TOKEN),
            lambda row, token: [is_real(row, token)], inside, (MASKS_IN_WORDS[mask],), pooled=REAL_TOKEN,
        )  # fmt: skip

    def change_description(self, tokens: int) -> str:
        return "replace the pad tokens"


LAW = PaddingLaw(
    code="OP202",
    name="padding",
    statement="Replacing pad tokens, left and right, leaves the outputs at the real tokens unchanged.",
    trait="ignores padding",
    expectation={"encoder": "holds", "causal_lm": "holds"},
    remedies={
        "holds": Remedy(
            text="Mask pads as keys in attention, and set them to zero before other operations that mix tokens: "
            "a convolution, a recurrence, a statistic.",
            diff="-scaled_dot_product_attention(q, k, v)\n"
            "+scaled_dot_product_attention(q, k, v, attn_mask=attention_mask[:, None, None, :].bool())",
        )
    },
    remedies_by_mixing={
        ATTENTION: Remedy(
            text="Mask pads as keys before the softmax, in every layer.",
            diff="-scaled_dot_product_attention(q, k, v)\n"
            "+scaled_dot_product_attention(q, k, v, attn_mask=attention_mask[:, None, None, :].bool())",
        ),
        CONVOLUTION: Remedy(
            text="Set pads to zero before this convolution, and before each later one: its bias makes them nonzero.",
            diff="-y = conv(x)\n+y = conv(x * attention_mask[:, None, :])",
        ),
        RUNNING_SUM: Remedy(
            text="Leave pads out of this running sum: multiply what it counts by the padding mask first.",
            diff="-queue = chosen.cumsum(0)\n+queue = (chosen * attention_mask.reshape(-1, 1)).cumsum(0)",
        ),
        RECURRENCE: Remedy(
            text="Keep pads out of the state: a pad must leave it as it is.",
            diff="-state = step(state, x[:, t])\n"
            "+state = torch.where(attention_mask[:, t, None].bool(), step(state, x[:, t]), state)",
        ),
        STATISTIC: Remedy(
            text="Take this statistic over the real tokens only.",
            diff="-mean = x.mean(1)\n+mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)",
        ),
        POOLING: Remedy(
            text="Set pads to zero before this pooling, and divide by the number of real tokens in each window."
        ),
        CHOICE: Remedy(
            text="Leave pads out of this choice: give them the lowest score first.",
            diff="-scores.topk(k)\n+scores.masked_fill(attention_mask == 0, -torch.inf).topk(k)",
        ),
        OTHER: Remedy(text="Set pads to zero before this operator, which mixes tokens, or leave them out of it."),
    },
    call_modes=("padded",),
    call_modes_of_one_side=ONE_SIDE,
    sequence_part="pads",
    call_modes_of_other_masks=tuple(layout for layout in PAD_LAYOUTS if layout not in ("padded", "no pads")),
)
