"""Softmax written by hand: a number for each row is taken from the scores before or after the mask."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.theorems.idioms.idiom import WIDTH, Attention, Idiom, hidden


class MaximumBeforeMask(Attention):
    """The largest of all scores is subtracted, then the mask is applied."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        s = s - s.amax(-1, keepdim=True)
        return s.masked_fill(hidden(x), float("-inf")).softmax(-1) @ self.v(x)


class MaximumKeptBeforeMask(Attention):
    """The same, but the difference reaches the output as well."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        s = s - s.amax(-1, keepdim=True)
        return s.masked_fill(hidden(x), float("-inf")).softmax(-1) @ self.v(x) + s[..., :1]


class ByHand(Attention):
    """Maximum, exponential, mask by product, sum."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        e = torch.exp(s - s.max(-1, keepdim=True).values) * (~hidden(x)).float()
        return (e / e.sum(-1, keepdim=True)) @ self.v(x)


class ByHandWithoutSum(Attention):
    """The sum is taken of all exponentials."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        e = torch.exp(s - s.max(-1, keepdim=True).values)
        return (e * (~hidden(x)).float() / e.sum(-1, keepdim=True)) @ self.v(x)


class MaskedThenByHand(Attention):
    """Mask first, then maximum, exponential, sum."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(hidden(x), float("-inf"))
        e = torch.exp(s - s.max(-1, keepdim=True).values)
        return (e / e.sum(-1, keepdim=True)) @ self.v(x)


class MaskedThenByHandOffByOne(Attention):
    """The mask is off by one."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(hidden(x, 2), float("-inf"))
        e = torch.exp(s - s.max(-1, keepdim=True).values)
        return (e / e.sum(-1, keepdim=True)) @ self.v(x)


class MeanCentred(Attention):
    """Scores less their mean, then the mask."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        s = s - s.mean(-1, keepdim=True)
        return torch.softmax(s + torch.full_like(s[0], float("-inf")).triu(1), -1) @ self.v(x)


class Standardized(Attention):
    """Scores over their deviation: that is no shift."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        s = (s - s.mean(-1, keepdim=True)) / s.std(-1, keepdim=True)
        return torch.softmax(s + torch.full_like(s[0], float("-inf")).triu(1), -1) @ self.v(x)


class DetachedMaximum(Attention):
    """The largest of all scores, detached, in two heads."""

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (f(x).view(b, n, 2, WIDTH // 2).transpose(1, 2) for f in (self.q, self.k, self.v))
        s = q @ k.transpose(-1, -2)
        s = s - s.max(dim=-1, keepdim=True)[0].detach()
        s = s.masked_fill(hidden(x), -1e9)
        return (nn.functional.softmax(s, dim=-1) @ v).transpose(1, 2).reshape(b, n, WIDTH)


IDIOMS = {
    "maximum before the mask": Idiom(MaximumBeforeMask, MaximumKeptBeforeMask),
    "exponentials by hand": Idiom(ByHand, ByHandWithoutSum),
    "mask, then by hand": Idiom(MaskedThenByHand, MaskedThenByHandOffByOne),
    "mean-centred": Idiom(MeanCentred, Standardized),
    "detached maximum": Idiom(DetachedMaximum),
}
