"""Modules with a fault of padding and their corrected twins; the line of each fault ends with `fault: NAME`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

WIDTH = 16
IDS = (2, 9)


@dataclass(frozen=True)
class Case:
    """One kind of module: how it is built, right or wrong, its inputs, and the law that its fault breaks."""

    name: str
    build: Callable[[bool], nn.Module]
    inputs: Callable[[], Any]
    law: str
    line: str = ""  # of its fault, by name; that of the case unless it is stated


class Attention(nn.Module):
    """Weights, places and attention, with a number that is added to scores."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.words = nn.Embedding(60, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def placed(self, x: Tensor) -> Tensor:
        x = self.words(x) if x.dtype == torch.long else x
        return x + torch.arange(x.shape[1])[:, None].to(x.dtype).sin()

    def attend(self, x: Tensor, other: Tensor, bias: Tensor | float) -> Tensor:
        return (self.query(x) @ self.key(other).mT / 4 + bias).softmax(-1) @ self.value(other)  # fault: attend


def hidden(pad: Tensor) -> Tensor:
    """The number that hides the keys of pads [row, token] from every query."""
    return torch.where(pad[:, None], -torch.inf, 0.0)


# ---------------------------------------------------------------- pooled outputs


class Pooled(Attention):
    def states(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        x = self.placed(ids)
        real = torch.ones(ids.shape[:2]) if mask is None else mask.float()
        return x + self.attend(x, x, hidden(real == 0)), real[..., None].to(x.dtype)


class Mean(Pooled):
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        h, real = self.states(input_ids, attention_mask)
        if self.right:
            return (h * real).sum(1) / real.sum(1)
        return h.mean(1)  # fault: mean


class SumOverAll(Pooled):
    def forward(self, tokens: Tensor, keep: Tensor | None = None, mask: Tensor | None = None) -> dict[str, Tensor]:
        h, real = self.states(tokens, mask)
        pooled = (h * real).sum(1)  # fault: divisor
        return {"hidden": h, "pooled": pooled / (real.sum(1) if self.right else h.shape[1])}


class Greatest(Pooled):
    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h, real = self.states(x, None if padding_mask is None else ~padding_mask)
        lowest = -torch.inf if self.right else 0.0
        return h, torch.where(real == 0, lowest, h - 3).amax(1)  # fault: greatest


class LastToken(Pooled):
    """The last real token of causal attention."""

    def states(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        x, real = self.placed(ids), torch.ones(ids.shape) if mask is None else mask.float()
        seen = torch.ones(ids.shape[1], ids.shape[1]).tril() * real[:, None] > 0
        return x + self.attend(x, x, torch.where(seen, 0.0, -1e9)), real[..., None].to(x.dtype)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        h, real = self.states(input_ids, attention_mask)
        rows, tokens = input_ids.shape
        places = (torch.arange(tokens) * real[..., 0]).amax(1) if self.right else real[..., 0].sum(1) - 1
        return h[torch.arange(rows), places.long()]  # fault: last


class Score(Pooled):
    """A score [row] by attention to a learned query."""

    def forward(self, document: Tensor, valid_mask: Tensor | None = None) -> Tensor:
        h, real = self.states(document, valid_mask)
        weights = h.sum(-1) + (hidden(real[..., 0] == 0)[:, 0] if self.right else 0.0)
        return (weights.softmax(-1)[..., None] * h).sum((1, 2))  # fault: score


class FirstToken(Pooled):
    """Right for pads on the right."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.states(input_ids, attention_mask)[0][:, 0]


class FinalToken(Pooled):
    """Right for pads on the left; attention is causal."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        real = torch.ones(x.shape[:2]) if attention_mask is None else attention_mask
        seen = torch.ones(x.shape[1], x.shape[1]).tril() * real[:, None] > 0
        return (x + self.attend(x, x, torch.where(seen, 0.0, -1e9)))[:, -1]


# ---------------------------------------------------------------- further sequences


class EncoderDecoder(Attention):
    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
        s, t = self.placed(src), self.placed(tgt)
        s = s + self.attend(s, s, hidden(src_mask == 0))
        t = t + self.attend(t, t, hidden(tgt_mask == 0))
        return t + self.attend(t, s, hidden(src_mask == 0) if self.right else 0.0)


class Memory(Attention):
    def forward(self, x: Tensor, memory: Tensor, memory_key_padding_mask: Tensor | None = None) -> Tensor:
        bias = 0.0 if memory_key_padding_mask is None else hidden(memory_key_padding_mask)
        x = self.placed(x)
        x = x + self.attend(x, x, 0.0)
        x = x + self.attend(x, memory, bias)
        return x + self.attend(x, memory, bias if self.right else 0.0)


class Captions(Attention):
    def forward(
        self, input_ids: Tensor, encoder_hidden_states: Tensor, encoder_attention_mask: Tensor
    ) -> dict[str, Tensor]:
        x, images = self.placed(input_ids), encoder_hidden_states
        x = x + self.attend(x, x, 0.0)
        x = x + self.attend(x, images, hidden(encoder_attention_mask == 0))
        return {"logits": x if self.right else x + images.mean(1, keepdim=True)}  # fault: captions


class TokensFirstDecoder(nn.Module):
    def __init__(self, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.layer = nn.TransformerDecoderLayer(WIDTH, 2, 32, dropout=0.0)

    def forward(self, tgt: Tensor, memory: Tensor, memory_key_padding_mask: Tensor) -> Tensor:
        places = torch.arange(tgt.shape[0])[:, None, None].to(tgt.dtype).sin()
        mask = memory_key_padding_mask if self.right else None
        return self.layer(tgt + places, memory, memory_key_padding_mask=mask)  # fault: decoder


class TwoTowers(Attention):
    def tower(self, ids: Tensor, mask: Tensor, right: bool) -> Tensor:
        x = self.placed(ids)
        real = mask[..., None].to(x.dtype)
        h = (x + self.attend(x, x, hidden(mask == 0))) * real
        return h.sum(1) / (real.sum(1) if right else h.shape[1])

    def forward(self, query: Tensor, query_mask: Tensor, doc: Tensor, doc_mask: Tensor) -> Tensor:
        towers = self.tower(query, query_mask, True) * self.tower(doc, doc_mask, self.right)
        return towers.sum(-1, keepdim=True)


# ---------------------------------------------------------------- masks that are required


class Required(Attention):
    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        bias = torch.where(attention_mask[:, None] == 0, -torch.inf, 0.0)
        x = self.placed(x)
        return x + self.attend(x, x, bias if self.right else 0.0)


class Additive(Attention):
    def forward(self, hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.placed(hidden_states)
        return x + self.attend(x, x, attention_mask[:, 0] if self.right else 0.0)


class Square(Attention):
    def forward(self, x: Tensor, attn_mask: Tensor) -> Tensor:
        x = self.placed(x)
        return x + self.attend(x, x, torch.where(attn_mask, 0.0, -1e9) if self.right else 0.0)


class Lengths(Attention):
    def forward(self, features: Tensor, x_lens: Tensor) -> Tensor:
        x, pad = self.placed(features), torch.arange(features.shape[1]) >= x_lens[:, None]
        return x + self.attend(x, x, hidden(pad) if self.right else 0.0)


class OptionalLengths(Attention):
    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        x = self.placed(x)
        pad = torch.arange(x.shape[1]) >= (x.shape[1] if lengths is None else lengths[:, None])
        x = x + self.attend(x, x, hidden(pad.expand(len(x), -1)))
        return x if self.right or lengths is None else x + x.mean(1, keepdim=True)  # fault: optional


class TokensFirst(nn.Module):
    def __init__(self, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0)

    def forward(self, src: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        x = src + torch.arange(src.shape[0])[:, None, None].to(src.dtype).sin()
        return self.layer(x, src_key_padding_mask=src_key_padding_mask if self.right else None)  # fault: first


def ids(tokens: int = 9) -> Tensor:
    return torch.randint(60, (2, tokens), generator=torch.Generator().manual_seed(0))


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, WIDTH, generator=torch.Generator().manual_seed(1))


def real(tokens: int = 9) -> Tensor:
    return torch.ones(2, tokens, dtype=torch.long)


POOLED = (
    Case("mean", Mean, ids, "padding"),
    Case("divisor", SumOverAll, ids, "pooled_padding"),
    Case("greatest", Greatest, lambda: vectors(2, 9), "pooled_padding"),
    Case("last", LastToken, ids, "pooled_padding"),
    Case("score", Score, ids, "padding"),
)
SECOND = (
    Case("cross", EncoderDecoder, lambda: (ids(), ids(7), real(), real(7)), "padding", "attend"),
    Case("memory", Memory, lambda: (vectors(2, 9), vectors(2, 9)), "padding", "attend"),
    Case("captions", Captions, lambda: (ids(), vectors(2, 6), real(6)), "padding"),
    Case(
        "decoder", TokensFirstDecoder,
        lambda: (vectors(9, 2), vectors(8, 2), torch.zeros(2, 8, dtype=torch.bool)), "padding",
    ),
    Case("towers", TwoTowers, lambda: (ids(), real(), ids(), real()), "pooled_padding"),
)  # fmt: skip
REQUIRED = (
    Case("required", Required, lambda: (vectors(2, 9), real()), "padding", "attend"),
    Case("additive", Additive, lambda: (vectors(2, 9), torch.zeros(2, 1, 1, 9)), "padding", "attend"),
    Case("square", Square, lambda: (vectors(2, 9), torch.ones(2, 9, 9, dtype=torch.bool)), "padding", "attend"),
    Case("lengths", Lengths, lambda: (vectors(2, 9), torch.tensor([9, 6])), "padding", "attend"),
    Case("optional", OptionalLengths, lambda: vectors(2, 9), "padding"),
    Case("first", TokensFirst, lambda: (vectors(9, 2), torch.zeros(2, 9, dtype=torch.bool)), "padding"),
)
CASES = (*POOLED, *SECOND, *REQUIRED)
