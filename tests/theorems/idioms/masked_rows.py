"""Rows without a visible key, repaired after the softmax; masks that are added more than once."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.theorems.idioms.idiom import Attention, Idiom, hidden


class NanToNum(Attention):
    """Rows of pads become zero."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(~(mask[:, None, :] & mask[:, :, None]).bool(), float("-inf"))
        return torch.nan_to_num(s.softmax(-1), nan=0.0) @ self.v(x)


class NanToNumOfScores(Attention):
    """The scores are repaired instead: hidden keys count again."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(~mask[:, None, :].bool(), float("-inf"))
        return torch.nan_to_num(s, neginf=0.0).softmax(-1) @ self.v(x)


class WhereAny(Attention):
    """A row without a visible key gets zeros."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        visible = (mask[:, None, :] * torch.ones_like(mask)[:, :, None]).bool() & ~hidden(x)
        w = self.scores(x).masked_fill(~visible, float("-inf")).softmax(-1)
        w = torch.where(visible.any(-1, keepdim=True), w, torch.zeros_like(w))
        return w @ self.v(x)


class WhereAnyOfOthers(Attention):
    """The branches are the wrong way round."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        visible = (mask[:, None, :] * torch.ones_like(mask)[:, :, None]).bool() & ~hidden(x)
        s = self.scores(x)
        w = torch.where(visible.any(-1, keepdim=True), s, s.masked_fill(~visible, float("-inf"))).softmax(-1)
        return w @ self.v(x)


class IsNan(Attention):
    """NaN in the output are overwritten."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(~mask[:, None, :].bool(), float("-inf")).masked_fill(hidden(x), float("-inf"))
        w = s.softmax(-1)
        return w.masked_fill(torch.isnan(w), 0.0) @ self.v(x)


class FilledAgain(Attention):
    """Weights of hidden keys are set to zero after the softmax."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        gone = ~mask[:, None, :].bool() | hidden(x)
        w = self.scores(x).masked_fill(gone, float("-inf")).softmax(-1).masked_fill(gone, 0.0)
        return w @ self.v(x)


class AddedTwice(Attention):
    """A causal mask and a mask of pads of finfo.min each are added."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        low = torch.finfo(x.dtype).min
        causal = torch.full((x.shape[1], x.shape[1]), low).triu(1)
        pads = (1.0 - mask[:, None, :].to(x.dtype)) * low
        return (self.scores(x) + causal + pads).softmax(-1) @ self.v(x)


class TenThousand(Attention):
    """Masks of -1e4 added twice, as in the first BERT."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        causal = torch.full((x.shape[1], x.shape[1]), -10000.0).triu(1)
        pads = (1.0 - mask[:, None, :].to(x.dtype)) * -10000.0
        return (self.scores(x) + causal + pads).softmax(-1) @ self.v(x)


class TenThousandOnce(Attention):
    """A causal mask of -1e4."""

    def forward(self, x: Tensor) -> Tensor:
        causal = torch.full((x.shape[1], x.shape[1]), -10000.0).triu(1)
        return (self.scores(x) + causal).softmax(-1) @ self.v(x)


class TenThousandOffByOne(Attention):
    """A mask of -1e4 that is off by one."""

    def forward(self, x: Tensor) -> Tensor:
        causal = torch.full((x.shape[1], x.shape[1]), -10000.0).triu(2)
        return (self.scores(x) + causal).softmax(-1) @ self.v(x)


class GptTwo(Attention):
    """b * s - 1e4 * (1 - b), as in the first GPT-2."""

    def forward(self, x: Tensor) -> Tensor:
        b = torch.tril(torch.ones(x.shape[1], x.shape[1]))
        return (self.scores(x) * b - 1e4 * (1 - b)).softmax(-1) @ self.v(x)


IDIOMS = {
    "nan_to_num of weights": Idiom(NanToNum, NanToNumOfScores, law="padding", masked=True),
    "where any key is visible": Idiom(WhereAny, WhereAnyOfOthers, law="causal", masked=True),
    "isnan of weights": Idiom(IsNan, law="causal", masked=True),
    "weights filled again": Idiom(FilledAgain, law="padding", masked=True),
    "finfo.min added twice": Idiom(AddedTwice, law="causal", masked=True),
    "finfo.min added twice, padding": Idiom(AddedTwice, law="padding", masked=True),
    "-1e4 added twice": Idiom(TenThousand, law="causal", masked=True),
    "-1e4 added": Idiom(TenThousandOnce, TenThousandOffByOne),
    "-1e4 of the first GPT-2": Idiom(GptTwo, TenThousandOffByOne),
}
