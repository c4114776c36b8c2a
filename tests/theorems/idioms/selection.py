"""Keys that are selected by their scores; elements that are gathered, scattered and pooled."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.idioms.idiom import Attention, Idiom, hidden


class TopKThreshold(Attention):
    """Scores below the third largest of the visible ones are hidden."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(hidden(x), float("-inf"))
        least = s.topk(2, dim=-1).values[..., -1:]
        return s.masked_fill(s < least, float("-inf")).softmax(-1) @ self.v(x)


class TopKBeforeMask(Attention):
    """The largest scores are chosen before the mask."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        least = s.topk(2, dim=-1).values[..., -1:]
        return s.masked_fill(s < least, -1e9).masked_fill(hidden(x), -2e9).softmax(-1) @ self.v(x)


class TopKScattered(Attention):
    """The chosen keys are scattered into a mask of -inf."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(hidden(x), float("-inf"))
        top = s.topk(2, dim=-1)
        kept = torch.full_like(s, float("-inf")).scatter(-1, top.indices, top.values)
        return kept.softmax(-1) @ self.v(x)


class GatheredKeys(Attention):
    """Values of the best visible key."""

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x).masked_fill(hidden(x), float("-inf"))
        best = s.argmax(-1)
        return x + torch.gather(self.v(x), 1, best[..., None].expand_as(x))


class GatheredAnyKey(Attention):
    """Values of the best of all keys."""

    def forward(self, x: Tensor) -> Tensor:
        best = self.scores(x).argmax(-1)
        return x + torch.gather(self.v(x), 1, best[..., None].expand_as(x))


class PreviousByGather(Attention):
    """The token before, by `gather`."""

    def forward(self, x: Tensor) -> Tensor:
        before = (torch.arange(x.shape[1]) - 1).clamp(min=0)
        return x + torch.gather(self.v(x), 1, before[None, :, None].expand_as(x))


class NextByGather(Attention):
    """The token after, by `gather`."""

    def forward(self, x: Tensor) -> Tensor:
        after = (torch.arange(x.shape[1]) + 1).clamp(max=x.shape[1] - 1)
        return x + torch.gather(self.v(x), 1, after[None, :, None].expand_as(x))


class ScatterPooling(Attention):
    """The mean of the tokens of each block, added to the tokens of later blocks."""

    def forward(self, x: Tensor) -> Tensor:
        block = torch.arange(x.shape[1]) // 4
        count = (x.shape[1] + 3) // 4
        sums = torch.zeros(x.shape[0], count, x.shape[2]).index_add(1, block, self.v(x))
        before = F.pad(sums, (0, 0, 1, 0))[:, :-1]
        return x + before[:, block]


class ScatterPoolingOwn(Attention):
    """The same, of the own block."""

    def forward(self, x: Tensor) -> Tensor:
        block = torch.arange(x.shape[1]) // 4
        count = (x.shape[1] + 3) // 4
        sums = torch.zeros(x.shape[0], count, x.shape[2]).index_add(1, block, self.v(x))
        return x + sums[:, block]


class ScatterReduce(Attention):
    """The largest of the tokens of each row, by `scatter_reduce`."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        v = self.v(x).masked_fill(~mask[..., None].bool(), -1e9)
        place = torch.zeros_like(v, dtype=torch.long)
        pooled = torch.full_like(v[:, :1], -1e9).scatter_reduce(1, place, v, "amax")
        return x + pooled.clamp(min=-100.0)


class IndexPut(Attention):
    """Tokens written to computed places."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        i = torch.arange(x.shape[1])
        out[:, i] = self.v(x)
        return x + out


class Trace(Attention):
    """Each token's score of itself, by `diagonal`."""

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scores(x).diagonal(dim1=-2, dim2=-1)[..., None]


class TraceOfAll(Attention):
    """The sum of these."""

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scores(x).diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]


class Einsum(Attention):
    """The same by a repeated label of einsum."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.einsum("bii->bi", self.scores(x))[..., None]


class EinsumTrace(Attention):
    """The sum by a repeated label."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.einsum("bii->b", self.scores(x))[:, None, None]


class FakeQuantizeTensor(Attention):
    """One scale from the largest of all tokens."""

    def forward(self, x: Tensor) -> Tensor:
        v = self.v(x)
        scale = v.abs().amax() / 127
        return torch.clamp(torch.round(v / scale), -128, 127) * scale


class FakeQuantizeToken(Attention):
    """A scale for each token."""

    def forward(self, x: Tensor) -> Tensor:
        v = self.v(x)
        scale = v.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        return torch.clamp(torch.round(v / scale), -128, 127) * scale


class FakeQuantizeFixed(Attention):
    """torch's operator with a fixed scale."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.fake_quantize_per_tensor_affine(self.v(x), 0.05, 0, -128, 127)


class FakeQuantizeComputed(Attention):
    """torch's operator with a scale from all tokens."""

    def forward(self, x: Tensor) -> Tensor:
        v = self.v(x)
        scale = v.abs().max() / 127
        return torch.fake_quantize_per_tensor_affine(v, scale, torch.zeros(1, dtype=torch.int32), -128, 127)


class FakeQuantizeChannel(Attention):
    """torch's operator with a scale for each feature."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.02, 0.08, 6))
        self.register_buffer("zero", torch.zeros(6, dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        return torch.fake_quantize_per_channel_affine(self.v(x), self.scale, self.zero, 2, -128, 127)


IDIOMS = {
    "threshold of the largest": Idiom(TopKThreshold, TopKBeforeMask),
    "largest, scattered": Idiom(TopKScattered),
    "best key gathered": Idiom(GatheredKeys, GatheredAnyKey),
    "token before by gather": Idiom(PreviousByGather, NextByGather),
    "pooling of blocks": Idiom(ScatterPooling, ScatterPoolingOwn),
    "scatter_reduce": Idiom(ScatterReduce, law="padding", masked=True),
    "scatter_reduce, permuted": Idiom(ScatterReduce, law="permutation", masked=True),
    "index_put at its own place": Idiom(IndexPut),
    "diagonal": Idiom(Trace, TraceOfAll),
    "diagonal, permuted": Idiom(Trace, law="permutation"),
    "trace, permuted": Idiom(TraceOfAll, law="permutation"),
    "repeated label of einsum": Idiom(Einsum, EinsumTrace),
    "repeated label of einsum, permuted": Idiom(Einsum, law="permutation"),
    "quantized by hand": Idiom(FakeQuantizeToken, FakeQuantizeTensor),
    "fake_quantize": Idiom(FakeQuantizeFixed, FakeQuantizeComputed),
    "fake_quantize of each feature": Idiom(FakeQuantizeChannel),
}
