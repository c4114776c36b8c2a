"""A mask that is used the wrong way round: the tokenizer's mask without `== 0` (mlwithme/TransformerTranslation#2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """One layer of attention over ids with positions; `hide` is True at keys that are not seen."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places, self.mix = nn.Embedding(50, 16), nn.Embedding(64, 16), nn.Linear(16, 48)

    def attend(self, ids: Tensor, hide: Tensor) -> Tensor:
        """The outputs [row, token, width]."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        q, k, v = self.mix(x).chunk(3, -1)
        return x + (q @ k.mT / 4).masked_fill(hide[:, None], -1e9).softmax(-1) @ v


class Given(Attention):
    """The tokenizer's output as inputs."""

    def __init__(self, *, inverted: bool) -> None:
        super().__init__()
        self.inverted = inverted

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.attend(input_ids, attention_mask == 0 if self.inverted else attention_mask.bool())


class Optional(Given):
    """A mask that the example does not give."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = torch.full_like(input_ids, int(self.inverted)) if attention_mask is None else attention_mask
        return super().forward(input_ids, mask)


class TorchMask(Given):
    """torch's convention, True at pads, which the example shows."""

    def forward(self, ids: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        return self.attend(ids, src_key_padding_mask if self.inverted else ~src_key_padding_mask)


class OwnMask(Given):
    """True at real tokens by the example, under a name of its own."""

    def forward(self, ids: Tensor, keep: Tensor) -> Tensor:
        return self.attend(ids, ~keep if self.inverted else keep)


def ids() -> Tensor:
    return torch.randint(50, (2, 8))


def right(fill: bool) -> Tensor:
    mask = torch.full((2, 8), fill)
    mask[1, 6:] = not fill
    return mask


def bad():
    return Given(inverted=False), {"input_ids": ids(), "attention_mask": right(True).long()}


def good():
    return Given(inverted=True), {"input_ids": ids(), "attention_mask": right(True).long()}


def good_own_convention():  # its example has 1 at pads
    return Given(inverted=False), {"input_ids": ids(), "attention_mask": right(False).long()}


def bad_optional():
    return Optional(inverted=False), ids()


def good_optional():
    return Optional(inverted=True), ids()


def bad_torch():
    return TorchMask(inverted=False), (ids(), right(False))


def good_torch():
    return TorchMask(inverted=True), (ids(), right(False))


def bad_own():
    return OwnMask(inverted=False), (ids(), right(True))


def good_own():
    return OwnMask(inverted=True), (ids(), right(True))
